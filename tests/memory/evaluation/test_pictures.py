"""What the pictures of an evaluation show, and that they load nothing and are the same each time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from svg_pictures import drawn_lines, texts_of

from memory.evaluation.pictures import recall_by_tokens, shares_by_language

BUDGETS = [110, 210, 410, 1_610]
SHARES = {
    "BM25 <words> & more": [0.1, 0.2, 0.3, 0.4],
    "cosine": [0.2, 0.3, 0.5, 0.6],
    "memproxy": [0.5, 0.6, 0.8, 0.91],
}
TALKS: dict[str, Any] = {
    "budgets": BUDGETS,
    "questions": 12,
    "by_talk": {"one": {}, "two": {}},
    "methods": {
        name: {f"{budget} tokens": share for budget, share in zip(BUDGETS, shares, strict=True)}
        for name, shares in SHARES.items()
    },
}
LEARNT: dict[str, Any] = {
    "records": 40,
    "recall": 0.75,
    "junk_rate": 0.0,
    "memories_per_turn": 0.5,
    "seconds": 0.25,
    "by_language": {"en": {"recall": 1.0, "junk_rate": 0.0}, "zh": {"recall": 0.5, "junk_rate": None}},
}


def bars(document: str) -> list[tuple[float, float]]:
    """Top and width of each, from top to bottom."""
    found = [element for element in ET.fromstring(document).iter() if element.get("clip-path")]
    return sorted((float(bar.get("y", "")), float(bar.get("width", ""))) for bar in found if bar.tag.endswith("}rect"))


@pytest.mark.parametrize("draw", [lambda: recall_by_tokens(TALKS), lambda: shares_by_language("extraction", LEARNT)])
def test_equal_results_give_equal_documents_which_run_and_load_nothing(draw: Callable[[], str]) -> None:
    document = draw()
    assert draw() == document
    assert not {"script", "image"} & {one.tag.rpartition("}")[2] for one in ET.fromstring(document).iter()}
    assert re.findall(r"https?:|href|url\([^#]|@import", document.replace("http://www.w3.org/2000/svg", "")) == []


def test_every_method_is_a_line_over_every_budget_and_is_named_with_its_last_share() -> None:
    document = recall_by_tokens(TALKS)
    assert [len(line) for line in drawn_lines(document)] == [len(BUDGETS)] * len(SHARES)
    shown = texts_of(document)
    assert {"0.40 BM25 <words> & more", "0.60 cosine", "0.91 memproxy"} <= set(shown)
    assert {"110", "210", "410", "1,610", "tokens of memories", "0.0", "1.0"} <= set(shown)
    assert any("questions: 12, talks: 2" in text for text in shown)
    *_, ours = drawn_lines(document)  # to scale, in tokens and in shares; more is higher
    (x110, y50), (x210, y60), (x410, y80), (x1610, _) = ours
    assert (x1610 - x110) / (x210 - x110) == pytest.approx(15.0, abs=0.01)
    assert (x410 - x210) / (x210 - x110) == pytest.approx(2.0, abs=0.01)
    assert (y50 - y80) / (y50 - y60) == pytest.approx(3.0, abs=0.01)
    assert y80 < y60


def test_every_share_has_a_bar_per_language_from_top_to_bottom_and_other_figures_have_none() -> None:
    document = shares_by_language("extraction", LEARNT)
    shown = texts_of(document)
    assert {"extraction: 40 records", "recall", "junk rate", "all", "en", "zh"} <= set(shown)
    assert not any("memories" in text or "seconds" in text for text in shown)
    widths = [width for _, width in bars(document)]
    assert [width / widths[1] for width in widths] == pytest.approx([0.75, 1.0, 0.5, 0.0, 0.0], abs=0.001)
    values = {"0.750", "1.000", "0.500", "0.000"}
    # zh has no junk rate
    assert [text for text in shown if text in values] == ["0.750", "0.000", "1.000", "0.000", "0.500"]
    area = ET.fromstring(document).find(".//{*}clipPath/{*}rect")
    assert area is not None
    (top, _), *_, (bottom, _) = bars(document)
    assert float(area.get("y", "")) <= top < bottom < float(area.get("y", "")) + float(area.get("height", ""))
    assert bars(shares_by_language("extraction", {"records": 0})) == [], "without shares there are none"
