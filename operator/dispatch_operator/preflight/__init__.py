"""The preflight probe: a backend takes no Start until its gates are proven."""
