"""Draws the figures of an evaluation of learning as SVG: one bar per share, in total and by language.

Computes nothing: only figures of the result are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

_LEFT, _BAR, _RIGHT = 190, 420, 70
_TOP, _HEIGHT, _GAP = 52, 14, 10
_COLOURS = ("#4a7fb5", "#c98a2b", "#6b9e4e", "#b3312c", "#9a9a9a", "#707070")
_FONT = 'font-family="sans-serif" font-size="12"'
_LEGEND = 70
_NO_SHARES = ("_per_turn", "_per_message", "_tokens", "seconds")  # endings of the names of other figures


def bars(name: str, result: Mapping[str, Any]) -> str:
    """An SVG document. Figures other than shares (counts, seconds, tokens) are in the tables only."""
    groups: dict[str, Mapping[str, Any]] = {"all": result, **result.get("by_language", {})}
    shares = [key for key, value in result.items() if isinstance(value, float) and 0.0 <= value <= 1.0]
    figures = [key for key in shares if not key.endswith(_NO_SHARES)]
    parts: list[str] = []
    y = _TOP
    for figure in figures:
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(figure.replace("_", " "))}</text>')
        for number, group in enumerate(groups.values()):
            value = group.get(figure)
            if isinstance(value, float):
                parts += _bar(y, value, _COLOURS[number % len(_COLOURS)])
                y += _HEIGHT + 2
        y += _GAP
    legend = [
        f'<text x="{_LEFT + _LEGEND * number}" y="40" fill="{_COLOURS[number % len(_COLOURS)]}">{escape(group)}</text>'
        for number, group in enumerate(groups)
    ]
    width = _LEFT + _BAR + _RIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 10}" role="img" {_FONT}>',
            f'<rect width="{width}" height="{y + 10}" fill="white"/>',
            f'<text x="{_LEFT}" y="22" font-size="15">{escape(name)}: {result["records"]} records</text>',
            *legend,
            *parts,
            "</svg>\n",
        ]
    )


def _bar(y: int, value: float, colour: str) -> list[str]:
    width = _BAR * value
    return [
        f'<rect x="{_LEFT}" y="{y}" width="{max(width, 1):.1f}" height="{_HEIGHT}" fill="{colour}"/>',
        f'<text x="{_LEFT + width + 6:.1f}" y="{y + 11}">{value:.3f}</text>',
    ]
