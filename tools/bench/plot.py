"""A small plot of how a measure grows with the settled Starts, as SVG."""

import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN = 240, 200, 42


class Curve(NamedTuple):
    """One measure."""

    title: str
    points: Sequence[tuple[int, float]]
    """By the number of settled Starts."""
    goal: float
    """Drawn as a dashed line."""


def svg(curves: Sequence[Curve]) -> str:
    """Return the plots of some measures side by side."""
    panels = "\n".join(
        f'<g transform="translate({place * WIDTH} 0)">{_panel(curve)}</g>' for place, curve in enumerate(curves)
    )
    size = f'width="{WIDTH * len(curves)}" height="{HEIGHT}"'
    style = "text{font:11px sans-serif;fill:#555}line,polyline{fill:none;stroke:#555}.goal{stroke-dasharray:4}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n{panels}\n</svg>\n'


def _panel(curve: Curve) -> str:
    least, most = math.log10(curve.points[0][0]), math.log10(curve.points[-1][0])
    top = 1.15 * max(curve.goal, *(value for _, value in curve.points))

    def x(starts: int) -> float:
        share = (math.log10(starts) - least) / (most - least) if most > least else 0.5
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 1)

    def y(value: float) -> float:
        return round(HEIGHT - MARGIN - value / top * (HEIGHT - 2 * MARGIN), 1)

    bottom, right, goal = y(0), WIDTH - MARGIN, y(curve.goal)
    corners = " ".join(f"{x(starts)},{y(value)}" for starts, value in curve.points)
    drawn = [
        f'<text x="{MARGIN}" y="20">{curve.title}</text>',
        f'<line x1="{MARGIN}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line x1="{MARGIN}" y1="{bottom}" x2="{MARGIN}" y2="{MARGIN}"/>',
        f'<line class="goal" x1="{MARGIN}" y1="{goal}" x2="{right}" y2="{goal}"/>',
        f'<text x="{MARGIN - 4}" y="{goal + 4}" text-anchor="end">{curve.goal:g}</text>',
        f'<polyline stroke-width="2" points="{corners}"/>',
    ]
    for starts, value in curve.points:
        drawn += [
            f'<circle cx="{x(starts)}" cy="{y(value)}" r="3"/>',
            f'<text x="{x(starts)}" y="{bottom + 16}" text-anchor="middle">{starts:,}</text>',
        ]
    return "".join(drawn)
