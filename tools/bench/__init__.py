"""`make bench`: what the operator costs, measured against a bare client that makes the fewest requests of a Start."""
