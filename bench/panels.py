"""Draws the panels of a dashboard as one SVG, in Grafana's grid: time series, single figures, bars and heatmaps.

Only what our dashboards use of Grafana's model is understood. The picture holds no script and no reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

COLUMN, ROW, GAP = 56.0, 36.0, 8.0  # pixels of Grafana's grid: 24 columns make 1344
TITLE, LEGEND = 24.0, 18.0
INK, FAINT, PAPER, PANEL = "#24292e", "#6e7781", "#f4f5f5", "#ffffff"
COLOURS = ("#3274d9", "#299c46", "#e0752d", "#a352cc", "#c4162a", "#0a9bb5", "#b5890a", "#7c5b9e", "#5b7083", "#8ab8ff")
NAMED = {"green": "#299c46", "orange": "#e0752d", "red": "#c4162a", "blue": "#3274d9"}
LEGENDS_MAX = 14
CHARACTER = 6.6  # width of one at 11 px, and a little


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a panel. `points`: Unix seconds and values, oldest first; empty if there is none."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Axes:
    """Where times and values stand in the picture."""

    box: Box
    start: float
    end: float
    low: float
    high: float

    def at(self, moment: float, value: float) -> tuple[float, float]:
        share = (moment - self.start) / ((self.end - self.start) or 1.0)
        rise = (value - self.low) / ((self.high - self.low) or 1.0)
        clipped = min(max(rise, 0.0), 1.0)
        return self.box.x + share * self.box.width, self.box.y + (1 - clipped) * self.box.height


def drawn(title: str, panels: Sequence[tuple[Mapping[str, Any], Sequence[Line]]], *, start: float, end: float) -> str:
    """The dashboard. Each panel comes with its series; rows have none."""
    height = max((panel["gridPos"]["y"] + panel["gridPos"]["h"]) * ROW for panel, _ in panels) + 52
    width = 24 * COLUMN + 2 * GAP
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="Inter, Helvetica, Arial, sans-serif" font-size="11">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        text(GAP + 4, 28, title, size=18),
    ]
    for panel, lines in panels:
        parts += _panel(panel, lines, start=start, end=end)
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Mapping[str, Any], lines: Sequence[Line], *, start: float, end: float) -> list[str]:
    place = panel["gridPos"]
    x, y = GAP + place["x"] * COLUMN, 44 + place["y"] * ROW
    if panel["type"] == "row":
        return [text(x + 4, y + 23, panel["title"], size=14)]
    box = Box(x + GAP / 2, y + GAP / 2, place["w"] * COLUMN - GAP, place["h"] * ROW - GAP)
    parts = [
        (
            f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="3" fill="{PANEL}" '
            'stroke="#dcdfe2"/>'
        ),
        text(box.x + 8, box.y + 17, shortened(panel["title"], box.width - 16, size=12), size=12),
    ]
    inner = Box(box.x + 8, box.y + TITLE, box.width - 16, box.height - TITLE - 8)
    shown = [line for line in lines if line.points]
    if not shown:
        return [*parts, text(box.x + box.width / 2, box.y + box.height / 2 + 8, "No data", anchor="middle", fill=FAINT)]
    draw = {"stat": _stat, "bargauge": _bars, "heatmap": _heatmap}.get(panel["type"], _time_series)
    return [*parts, *draw(panel["fieldConfig"]["defaults"], shown, inner, (start, end))]


def _stat(style: Mapping[str, Any], lines: Sequence[Line], box: Box, span: tuple[float, float]) -> list[str]:
    """The last value, large, above its own past."""
    line = lines[0]
    value = line.points[-1][1]
    colour = _colour_of(style, value)
    high = max(1e-9, *(v for _, v in line.points))
    axes = Axes(Box(box.x, box.y + box.height * 0.62, box.width, box.height * 0.38), *span, 0.0, high)
    return [
        *_area(axes, line.points, [(at, 0.0) for at, _ in line.points], colour, opacity=0.18),
        text(
            box.x + box.width / 2,
            box.y + box.height * 0.5,
            shown_as(value, style["unit"]),
            anchor="middle",
            fill=colour,
            size=28,
        ),
    ]


def _bars(style: Mapping[str, Any], lines: Sequence[Line], box: Box, _: tuple[float, float]) -> list[str]:
    """One bar for each series, with its last value."""
    high = float(style.get("max", max(line.points[-1][1] for line in lines))) or 1.0
    step = min(24.0, box.height / len(lines))
    room = max(len(line.name) for line in lines) * CHARACTER + 10
    parts = []
    for index, line in enumerate(lines):
        value, y = line.points[-1][1], box.y + index * step
        length = max(2.0, (box.width - room - 56) * min(1.0, value / high))
        parts += [
            text(box.x + room - 6, y + step / 2 + 4, line.name, anchor="end"),
            (
                f'<rect x="{box.x + room:.1f}" y="{y + 3:.1f}" width="{length:.1f}" height="{step - 6:.1f}" '
                f'fill="{_colour_of(style, value)}"/>'
            ),
            text(box.x + room + length + 6, y + step / 2 + 4, shown_as(value, style["unit"])),
        ]
    return parts


def _heatmap(style: Mapping[str, Any], lines: Sequence[Line], box: Box, span: tuple[float, float]) -> list[str]:
    """Buckets as Prometheus counts them, each with all below it; drawn is what each adds."""
    bounds = sorted((math.inf if line.name == "+Inf" else float(line.name), dict(line.points)) for line in lines)
    moments = sorted({at for _, points in bounds for at in points})
    added = [
        {at: max(0.0, points.get(at, 0.0) - (bounds[index - 1][1].get(at, 0.0) if index else 0.0)) for at in moments}
        for index, (_, points) in enumerate(bounds)
    ]
    used = [index for index, cells in enumerate(added) if max(cells.values(), default=0.0) > 0]
    if not used:
        return [text(box.x + box.width / 2, box.y + box.height / 2, "nothing yet", anchor="middle", fill=FAINT)]
    first, last = max(0, used[0] - 1), min(len(bounds) - 1, used[-1] + 1)
    plot = Box(box.x + 46, box.y + 4, box.width - 50, box.height - 22)
    axes = Axes(plot, *span, 0.0, float(last - first + 1))
    most = max(max(cells.values()) for cells in added)
    wide = plot.width / max(1, len(moments))
    tall = plot.height / (last - first + 1)
    parts = [*_times(axes), '<g fill="#1f60c4" shape-rendering="crispEdges">']
    for row, index in enumerate(range(first, last + 1)):
        y = plot.y + plot.height - (row + 1) * tall
        bound = bounds[index][0]
        name = "more" if math.isinf(bound) else shown_as(bound, style["unit"])
        parts.append(text(plot.x - 4, y + 4, name, anchor="end", fill=FAINT, size=10))
        for at, count in added[index].items():
            if count > 0:
                x = axes.at(at, 0)[0] - wide
                opacity = 0.12 + 0.88 * math.sqrt(count / most)
                parts.append(
                    f'<rect x="{max(x, plot.x):.1f}" y="{y:.1f}" width="{wide + 0.4:.1f}" height="{tall:.1f}" '
                    f'opacity="{opacity:.2f}"/>'
                )
    return [*parts, "</g>"]


def _time_series(style: Mapping[str, Any], lines: Sequence[Line], box: Box, span: tuple[float, float]) -> list[str]:
    custom = style.get("custom", {})
    is_stacked = custom.get("stacking", {}).get("mode") == "normal"
    legend, below = _legend(lines, box)
    plot = Box(box.x + 46, box.y + 4, box.width - 50, box.height - 22 - below)
    floors = _floors(lines) if is_stacked else [[(at, 0.0) for at, _ in line.points] for line in lines]
    tops = [_on(line.points, floor) if is_stacked else line.points for line, floor in zip(lines, floors, strict=True)]
    limits = [step["value"] for step in style.get("thresholds", {}).get("steps", []) if step["value"] is not None]
    high = max(value for top in tops for _, value in top)
    near = [limit for limit in limits if limit <= high * 3]  # one far above would press all lines to the floor
    axes = Axes(plot, *span, 0.0, _nice(max([high, *near]) * 1.05))
    parts = [*_values(axes, style["unit"]), *_times(axes)]
    for index, (top, floor) in enumerate(zip(tops, floors, strict=True)):
        if is_stacked and not any(value for _, value in lines[index].points):
            continue  # its line would hide that of the series below
        colour = COLOURS[index % len(COLOURS)]
        for run in _runs(top):
            parts += _area(axes, top[run], floor[run], colour, opacity=custom.get("fillOpacity", 0) / 100)
            parts.append(_path(axes, top[run], colour))
    for limit in near:
        y = axes.at(span[0], limit)[1]
        parts.append(
            f'<path d="M{plot.x:.1f} {y:.1f}H{plot.x + plot.width:.1f}" stroke="{NAMED["red"]}" '
            'stroke-dasharray="5 4" fill="none"/>'
        )
    return [*parts, *legend]


def _runs(points: Sequence[tuple[float, float]]) -> list[slice]:
    """Where no value is missing: a line does not bridge a gap."""
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(points)]
    ends = [index + 1 for index, step in enumerate(steps) if step > 2.5 * min(steps)]
    return [slice(start, stop) for start, stop in pairwise([0, *ends, len(points)])]


def _floors(lines: Sequence[Line]) -> list[list[tuple[float, float]]]:
    """For each line what the lines before it add up to."""
    sums: dict[float, float] = {}
    floors = []
    for line in lines:
        floors.append([(at, sums.get(at, 0.0)) for at, _ in line.points])
        for at, value in line.points:
            sums[at] = sums.get(at, 0.0) + value
    return floors


def _on(points: Sequence[tuple[float, float]], floor: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple((at, value + below) for (at, value), (_, below) in zip(points, floor, strict=True))


def _legend(lines: Sequence[Line], box: Box) -> tuple[list[str], float]:
    """Names below the plot, in at most two rows; and the height that they take."""
    parts, x, row = [], box.x, 0
    entries = list(enumerate(lines))[:LEGENDS_MAX]
    placed: list[tuple[float, int, int, str]] = []
    for index, line in entries:
        name = shortened(line.name, box.width - 20)
        width = len(name) * CHARACTER + 24
        if x > box.x and x + width > box.x + box.width:
            x, row = box.x, row + 1
        if row == 2:
            break
        placed.append((x, row, index, name))
        x += width
    rows = max(row for _, row, _, _ in placed) + 1
    bottom = box.y + box.height - (rows - 1) * 15
    for at, row, index, name in placed:
        y = bottom + row * 15
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<path d="M{at:.1f} {y - 4:.1f}h12" stroke="{colour}" stroke-width="3"/>')
        parts.append(text(at + 16, y, name, fill=FAINT))
    if len(placed) < len(lines):
        parts.append(text(box.x + box.width, box.y - 7, f"+{len(lines) - len(placed)} more", anchor="end", fill=FAINT))
    return parts, LEGEND + (rows - 1) * 15


def _values(axes: Axes, unit: str) -> list[str]:
    parts = []
    for index in range(5):
        value = axes.high * index / 4
        x, y = axes.at(axes.start, value)
        parts.append(f'<path d="M{x:.1f} {y:.1f}h{axes.box.width:.1f}" stroke="#e8eaed"/>')
        parts.append(text(x - 4, y + 4, shown_as(value, unit), anchor="end", fill=FAINT, size=10))
    return parts


def _times(axes: Axes) -> list[str]:
    """Seconds since the beginning: the hour of the run says nothing."""
    span, y = axes.end - axes.start, axes.box.y + axes.box.height + 14
    return [
        text(axes.at(axes.start + span * share, 0)[0], y, f"{span * share:.0f} s", anchor=anchor, fill=FAINT, size=10)
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]


def _path(axes: Axes, points: Sequence[tuple[float, float]], colour: str) -> str:
    steps = _corners(axes, points)
    if len(points) == 1:
        x, y = axes.at(*points[0])
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>'
    return f'<path d="M{steps}" stroke="{colour}" stroke-width="1.5" fill="none" stroke-linejoin="round"/>'


def _corners(axes: Axes, points: Sequence[tuple[float, float]]) -> str:
    """The points of a path, without those between two of the same value: most lines are flat for most of the time."""
    kept = [
        point
        for index, point in enumerate(points)
        if index in (0, len(points) - 1) or not points[index - 1][1] == point[1] == points[index + 1][1]
    ]
    return "L".join("{:.1f} {:.1f}".format(*axes.at(*point)) for point in kept)


def _area(
    axes: Axes, top: Sequence[tuple[float, float]], floor: Sequence[tuple[float, float]], colour: str, *, opacity: float
) -> list[str]:
    if not opacity or len(top) < 2:
        return []
    steps = f"{_corners(axes, top)}L{_corners(axes, floor[::-1])}"
    return [f'<path d="M{steps}Z" fill="{colour}" opacity="{opacity:g}"/>']


def _colour_of(style: Mapping[str, Any], value: float) -> str:
    steps = style.get("thresholds", {}).get("steps", [{"color": "blue", "value": None}])
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return NAMED[reached[-1]]


def _nice(value: float) -> float:
    """The next number that reads well, as the top of an axis with four steps."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value)


def shown_as(value: float, unit: str) -> str:
    """A number with its unit, in three digits."""
    match unit:
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "s":
            return f"{value:.3g} s" if value >= 1 or value == 0 else f"{value * 1000:.3g} ms"
        case "reqps" | "ops":
            return f"{_short(value)}/s"
        case _:
            return _short(value)


def _short(value: float) -> str:
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:.3g}{letter}"
    return f"{value:.3g}"


def shortened(words: str, width: float, *, size: float = 11) -> str:
    most = max(4, int(width / (CHARACTER * size / 11)))
    return words if len(words) <= most else f"{words[: most - 1]}…"


def text(x: float, y: float, words: str, *, anchor: str = "start", fill: str = INK, size: float = 11) -> str:
    """Titles, which are larger than the rest, are bold."""
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (f' font-size="{size:g}"' if size != 11 else "")
    bold = ' font-weight="600"' if size > 11 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{more}{bold}>{escape(words)}</text>'
