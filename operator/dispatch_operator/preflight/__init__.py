"""The preflight probe: a backend takes no Start until its gates are proven (contract section 10)."""

from dispatch_operator.preflight.backends import Backends

__all__ = ["Backends"]
