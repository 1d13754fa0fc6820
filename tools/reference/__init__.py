"""The generated pages of the documentation, in docs/reference: kinds, chart, command line and metrics."""
