"""The start gate: where it is wanted, where it is, and what moves it."""
