"""Draws curves over numbers of things, side by side in one SVG: each panel has one axis of values and some lines.

The steps of a panel stand at equal distances, whatever they count. The picture holds no script and no reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from panels import COLOURS, FAINT, PANEL, PAPER, text

WIDTH, HEIGHT, GAP = 400.0, 260.0, 16.0
HEAD, LEFT, RIGHT, TOP, BOTTOM = 40.0, 48.0, 16.0, 56.0, 44.0
LEVELS = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """`values`: one for each step of its panel."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """`steps`: what is counted, as it is written below the axis."""

    title: str
    steps: Sequence[str]
    curves: Sequence[Curve]


def drawn_curves(title: str, panels: Sequence[CurvePanel]) -> str:
    width, height = len(panels) * (WIDTH + GAP) + GAP, HEAD + HEIGHT + GAP
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="Inter, Helvetica, Arial, sans-serif" font-size="11">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        text(GAP, 26, title, size=16),
    ]
    for place, panel in enumerate(panels):
        parts += _panel(panel, GAP + place * (WIDTH + GAP))
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: CurvePanel, x: float) -> list[str]:
    left, right = x + LEFT, x + WIDTH - RIGHT
    top, bottom = HEAD + TOP, HEAD + HEIGHT - BOTTOM
    high = top_of_axis(max(value for curve in panel.curves for value in curve.values))
    across = [left + (right - left) * (place + 0.5) / len(panel.steps) for place in range(len(panel.steps))]
    parts = [
        f'<rect x="{x:g}" y="{HEAD:g}" width="{WIDTH:g}" height="{HEIGHT:g}" rx="3" fill="{PANEL}" stroke="#dcdfe2"/>',
        text(x + 10, HEAD + 20, panel.title, size=12),
    ]
    for level in range(LEVELS + 1):
        y = bottom - (bottom - top) * level / LEVELS
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#e8eaed"/>')
        parts.append(text(left - 5, y + 4, f"{high * level / LEVELS:g}", anchor="end", fill=FAINT, size=10))
    parts += [
        text(at, bottom + 15, step, anchor="middle", fill=FAINT) for at, step in zip(across, panel.steps, strict=True)
    ]
    for index, curve in enumerate(panel.curves):
        colour = COLOURS[index]
        heights = [bottom - (bottom - top) * value / high for value in curve.values]
        points = "L".join(f"{at:.1f} {y:.1f}" for at, y in zip(across, heights, strict=True))
        parts.append(f'<path d="M{points}" stroke="{colour}" stroke-width="1.8" fill="none" stroke-linejoin="round"/>')
        for at, y, value in zip(across, heights, curve.values, strict=True):
            parts.append(f'<circle cx="{at:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            parts.append(text(at, y - 7, f"{value:.0f}", anchor="middle", fill=colour, size=10))
        legend = x + 10 + index * 120
        parts.append(f'<path d="M{legend:.1f} {HEAD + 36:.1f}h12" stroke="{colour}" stroke-width="3"/>')
        parts.append(text(legend + 17, HEAD + 40, curve.name, fill=FAINT))
    return parts


def top_of_axis(value: float) -> float:
    """The next number from which four equal steps read well."""
    power = 1.0
    while power * 10 <= max(value, 1.0):
        power *= 10
    return next(power * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if power * step >= value)
