"""Every fault of every request: what can happen, where, and what must come of it."""
