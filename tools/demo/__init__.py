"""`make demo` and `make demo KUEUE=1`: the operator at work on a control plane of its own."""
