"""Steps 1 to 4 of a Start: what is wrong with a backend, a request, a runtime, and the request on the runtime."""
