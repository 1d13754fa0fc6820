"""`kubectl dispatch`: what becomes of a DispatchStart, why, and what to do, for people (docs/kubectl.md)."""
