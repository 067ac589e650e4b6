"""Renders the figures of recall as a Markdown table and as a picture (SVG, drawn without a library).

Computes nothing: only figures of the result are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Column heads and rows."""

_GROUPS = ("by_language", "by_label", "by_tag")
_FURTHER_TABLES = (("source", "by_source"), ("type", "by_type"))  # whose names may equal those of a group
_TALK_TABLES = (("method", "methods"), ("talk", "by_talk"), ("category", "by_category"))
_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 150, 60, 50
_COLOURS = ("#9a9a9a", "#707070", "#4a7fb5", "#c98a2b", "#6b9e4e", "#b3312c")
_LABEL_HEIGHT = 15
_NUMBER_WIDTH = 34  # of a budget under the axis; if two are closer, the smaller has a tick only
_FONT = 'font-family="sans-serif" font-size="12"'


def markdown(result: Mapping[str, Any]) -> str:
    """The tables of a result of any evaluation."""
    return "\n\n".join(_markdown_table(head, rows) for head, rows in tables(result)) + "\n"


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The figures of a result, in total and by group; figures per record are in the JSON only."""
    if result.get("kind") == "talks":
        return [_table(name, result[key]) for name, key in _TALK_TABLES]
    figures = {name: value for name, value in result.items() if value is None or isinstance(value, int | float)}
    groups = [result[key] for key in _GROUPS if key in result]
    rows = {"all": result.get("all", figures)}
    for group in groups:
        rows |= {name or "(none)": row for name, row in group.items()}
    further = [_table(name, result[key]) for name, key in _FURTHER_TABLES if result.get(key)]
    return [_table("group", rows), *further]


def _table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    columns = list(next(iter(rows.values()), {}))
    head = [first, *(column.replace("_", " ") for column in columns)]  # spaces, so that a terminal can break the lines
    return head, [[name, *(_cell(row.get(column)) for column in columns)] for name, row in rows.items()]


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    """A group's name comes from a file: it must not break its cell."""
    return " ".join(cell.replace("|", "\\|").split())


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def picture(result: Mapping[str, Any]) -> str:
    """Recall against tokens, one line per method, as an SVG document. For talks only."""
    budgets: Sequence[int] = result["budgets"]
    lines = {name: [row[f"{budget} tokens"] for budget in budgets] for name, row in result["methods"].items()}
    measured = f"questions: {result['questions']}, talks: {len(result['by_talk'])}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">Share of the evidence recalled, by tokens spent</text>',
        f'<text x="{_LEFT}" y="41" fill="#606060">{escape(measured)}</text>',
        *_grid(budgets),
    ]
    ends = _label_heights({name: _y(values[-1]) for name, values in lines.items()})
    for number, (name, values) in enumerate(lines.items()):
        is_last = number == len(lines) - 1  # our own method
        parts += _line(list(zip(budgets, values, strict=True)), _COLOURS[number % len(_COLOURS)], 3 if is_last else 1.6)
        label = f'<tspan font-weight="bold">{values[-1] or 0:.2f}</tspan>  {escape(name)}'
        at = f'x="{_WIDTH - _RIGHT + 10}" y="{ends[name] + 4:.1f}"'
        parts.append(f'<text {at} fill="{_COLOURS[number % len(_COLOURS)]}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(values: Sequence[tuple[int, float | None]], colour: str, width: float) -> list[str]:
    """With a dot at each measured budget."""
    budgets = [budget for budget, _ in values]
    points = [(_x(budget, budgets), _y(value)) for budget, value in values]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width:.1f}" fill="{colour}"/>' for x, y in points),
    ]


def _grid(budgets: Sequence[int]) -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    bottom, taken = _HEIGHT - _BOTTOM, float(_WIDTH)
    for budget in reversed(budgets):
        x = _x(budget, budgets)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#808080"/>')
        if taken - x >= _NUMBER_WIDTH:
            taken = x
            parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{budget:,}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">tokens of memories</text>')
    return parts


def _label_heights(heights: Mapping[str, float]) -> dict[str, float]:
    """Positions of labels without overlap: from the top, each at its line's end or below the previous one."""
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
