"""How much work a function makes, counted and not timed: a slow machine changes nothing."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def instructions(function: Callable[[], object]) -> int:
    """Return how many instructions Python executes for a call; those of C code are not among them."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def growth(function: Callable[[int], object], size: int) -> float:
    """Return how many times the work of a size twice that size makes: 2 is linear, 4 is quadratic."""
    # What is made once, at the first call, is no part of it.
    function(1)
    return instructions(lambda: function(2 * size)) / instructions(lambda: function(size))
