"""One DispatchStart, from its request to the end of its job."""
