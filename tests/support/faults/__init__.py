"""Every fault of every request: what can happen, where, and what must come of it (issue 5, items 1 to 3)."""
