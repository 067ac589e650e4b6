"""Figures of recall as a Markdown table and as a picture (SVG, drawn here: no library for eight polylines).

It must not compute anything: what is not in the result is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 150, 40, 50
_COLOURS = ("#b9b9b9", "#8f8f8f", "#4a7fb5", "#c98a2b", "#6b9e4e", "#b3312c")
_LABEL_HEIGHT = 14
_FONT = 'font-family="sans-serif" font-size="12"'


def markdown(result: Mapping[str, Any]) -> str:
    """The tables of a result of `evaluate_recall`."""
    if result["kind"] == "talks":
        methods = _table("method", result["methods"])
        return f"{methods}\n\n{_table('talk', result['by_talk'])}\n\n{_table('category', result['by_category'])}\n"
    rows = {"all": result["all"], **result["by_language"], **result["by_tag"]}
    return _table("group", rows) + "\n"


def _table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    columns = list(next(iter(rows.values()), {}))
    lines = [f"| {first} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(_cell(row[column]) for column in columns)} |" for name, row in rows.items()]
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def picture(result: Mapping[str, Any]) -> str:
    """Recall against tokens, one line per method, as an SVG document. For talks only."""
    budgets: Sequence[int] = result["budgets"]
    lines = {name: [row[f"{budget} tokens"] for budget in budgets] for name, row in result["methods"].items()}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">Share of the evidence recalled, by tokens spent</text>',
        *_grid(budgets),
    ]
    ends = _label_heights({name: _y(values[-1]) for name, values in lines.items()})
    for number, (name, values) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{_x(b, budgets):.1f},{_y(v):.1f}" for b, v in zip(budgets, values, strict=True))
        width = 3 if number == len(lines) - 1 else 1.6
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        label = f"{escape(name)} {values[-1]:.2f}"
        parts.append(f'<text x="{_WIDTH - _RIGHT + 8}" y="{ends[name] + 4:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(budgets: Sequence[int]) -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for budget in budgets:
        x = _x(budget, budgets)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{budget}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">tokens of memories</text>')
    return parts


def _label_heights(heights: Mapping[str, float]) -> dict[str, float]:
    """Where labels stand so that none covers another: from the top, each at its line's end or below the one before."""
    placed: dict[str, float] = {}
    lowest = -float(_LABEL_HEIGHT)
    for name in sorted(heights, key=lambda key: heights[key]):
        lowest = max(heights[name], lowest + _LABEL_HEIGHT)
        placed[name] = lowest
    return placed


def _x(budget: float, budgets: Sequence[int]) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * budget / max(budgets)


def _y(share: float | None) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (share or 0.0))
