"""The words and shapes of the operator's own API, and of those that it talks to; everything else builds on them."""
