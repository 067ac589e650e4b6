"""Draws figures of an evaluation as SVG: recall against tokens, and one bar per share, in total and by language.

Computes nothing: only figures of the result are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, tostring

import ziaplot

_COLOURS = ("#9a9a9a", "#707070", "#4a7fb5", "#c98a2b", "#6b9e4e", "#b3312c")
_GROUP_COLOURS = ("#4a7fb5", "#c98a2b", "#6b9e4e", "#b3312c", "#9a9a9a", "#707070")
_TENTHS = [tenth / 10 for tenth in range(0, 11, 2)]
_WIDTH, _LINES_HEIGHT = 760, 440
_MARGIN = 20  # around the picture: the library estimates the widths of texts, and some fonts are wider
_BAR_HEIGHT, _FRAME_HEIGHT = 16, 80  # of one bar; of title and axis together
_LONGEST_BAR = 1.12  # where the axis ends, so that the figure after a bar of 1.0 has room
_GAP = 0.8  # between the bars of two figures, in bars
_NO_SHARES = ("_per_turn", "_per_message", "_tokens", "seconds")  # endings of the names of other figures
_STYLE = """
    Graph { color: white; edge_color: #808080; edge_width: 1; }
    Graph.GridX { color: #e4e4e4; stroke: solid; }
    Graph.GridY { color: #e4e4e4; stroke: solid; }
    Graph.TickX { font_size: 12; height: 4; stroke_width: 1; num_format: ,.0f; edge_color: #808080; }
    Graph.TickY { font_size: 12; height: 4; stroke_width: 1; num_format: .1f; edge_color: #808080; }
    Graph.XName { font_size: 12; }
    Graph.Title { font_size: 15; }
    Graph.Legend { font_size: 12; edge_color: white; }
    Graph.LegendText { font_size: 12; }
    Text { font_size: 12; }
    PolyLine { edge_width: 0; }
    BarsHoriz { edge_color: white; }
"""


def recall_by_tokens(result: Mapping[str, Any]) -> str:
    """Recall against tokens, one line per method, the last one (our own) bold. For talks only."""
    budgets: Sequence[int] = result["budgets"]
    measured = f"questions: {result['questions']}, talks: {len(result['by_talk'])}"
    graph = _graph(f"Share of the evidence recalled, by tokens spent ({measured})", _LINES_HEIGHT)
    graph.axesnames(x="tokens of memories").xticks(budgets).yticks(_TENTHS).xrange(0, max(budgets)).yrange(0, 1)
    *_, last = result["methods"]
    for number, (name, row) in enumerate(result["methods"].items()):
        shares = [row[f"{budget} tokens"] for budget in budgets]
        width = 3 if name == last else 1.6
        line = ziaplot.PolyLine(budgets, shares).marker("round", radius=1.8 * width).strokewidth(width)
        graph.add(line.color(_COLOURS[number % len(_COLOURS)]).name(f"{shares[-1]:.2f} {name}"))
    return _document(graph)


def shares_by_language(name: str, result: Mapping[str, Any]) -> str:
    """One bar per share and group. Figures other than shares (counts, seconds, tokens) are in the tables only."""
    groups: dict[str, Mapping[str, Any]] = {"all": result, **result.get("by_language", {})}
    shares = [key for key, value in result.items() if isinstance(value, float) and 0.0 <= value <= 1.0]
    figures = [key for key in shares if not key.endswith(_NO_SHARES)]
    rows = len(figures) * (len(groups) + _GAP)
    graph = _graph(f"{name}: {result['records']} records", round(_FRAME_HEIGHT + _BAR_HEIGHT * rows))
    tops = [-place * (len(groups) + _GAP) for place in range(len(figures))]  # the axis points upwards
    middles = [top - (len(groups) - 1) / 2 for top in tops]
    names = [figure.replace("_", " ") for figure in figures]
    graph.yticks(middles[::-1], names[::-1]).yrange(-rows, 0.5)  # falling ticks would narrow the range
    graph.xticks(_TENTHS, [str(tenth) for tenth in _TENTHS]).xrange(0, _LONGEST_BAR)
    for number, (group, row) in enumerate(groups.items()):
        values = {top - number: row.get(figure) for top, figure in zip(tops, figures, strict=True)}
        drawn = {height: share for height, share in values.items() if isinstance(share, float)}
        if drawn:
            bars = ziaplot.BarsHoriz(list(drawn), list(drawn.values()), width=1)
            graph.add(bars.color(_GROUP_COLOURS[number % len(_GROUP_COLOURS)]).name(group))
        for height, share in drawn.items():
            graph.add(ziaplot.Text(share + 0.01, height, f"{share:.3f}", valign="center"))
    return _document(graph)


def _graph(title: str, height: int) -> ziaplot.Graph:
    return ziaplot.Graph().css(_STYLE).size(_WIDTH, height).title(title).legend("right")


def _document(graph: ziaplot.Graph) -> str:
    root: Element = graph.svgxml()
    width, height = _WIDTH + 2 * _MARGIN, graph.height + 2 * _MARGIN
    root.attrib |= {"width": str(width), "height": str(height), "style": "background: white"}
    root.set("viewBox", f"{-_MARGIN} {-_MARGIN} {width} {height}")
    return tostring(root, encoding="unicode") + "\n"
