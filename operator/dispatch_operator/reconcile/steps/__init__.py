"""The nine steps of a Start, by their names; `order` is the table that orders them."""
