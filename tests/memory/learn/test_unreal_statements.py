"""What would be, were things otherwise, and what is said about the answer at hand: neither is kept."""

from __future__ import annotations

import pytest
from turn_logs import a_turn

from memory.learn import verbatim


def kept(text: str) -> list[str]:
    return [fact.content for fact in verbatim.extract([a_turn("t", text=text)])]


@pytest.mark.parametrize(
    "text",
    [
        "hm, if I were rich I'd just hire a chef",
        "If I lived in Tokyo I'd eat ramen every day lol",
        "Wenn ich reich wäre, würde ich sofort kündigen",
        "给我讲个笑话，假如我是秦始皇，你怎么称呼我",
        "再口语一点",
        "把这句翻成英文：我妈妈住在苏州，退休前是护士。",
    ],
)
def test_nothing_of_it_is_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I eat peanuts I end up in hospital.",
        "If it rains I take the bus to work.",
        "如果下雨，我就坐地铁上班",
        "我每天再忙也要跑步",
    ],
)
def test_what_holds_under_a_condition_is_kept(text: str) -> None:
    assert kept(text) != []
