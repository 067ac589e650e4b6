"""Diets that are broken, opinions turned round, people who parted, troubles that healed; and what only looks alike."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, may_change

REPLACED = [  # each: what was said first, and later
    ("I'm vegetarian", "I eat meat again"),
    ("I'm a strict vegan", "these days I eat eggs and cheese"),
    ("I've been on keto since New Year", "I eat bread and pasta again, keto made me miserable"),
    ("I don't drink alcohol", "I drink a beer on Fridays again"),
    ("Soy vegano desde hace años", "Como pescado y huevos otra vez"),
    ("Ich bin Vegetarierin", "Ich esse wieder Fleisch"),
    ("Ich trinke keinen Kaffee", "ich trinke wieder Kaffee, zwei Tassen am Tag"),
    ("I don't work on Fridays", "I work on Fridays again, at the front desk"),
    ("我吃素", "我又开始吃肉了"),
    ("I can't stand coriander", "I've really come round to coriander, it goes on everything"),
    ("I love techno", "I hate techno these days"),
    ("我讨厌香菜", "我现在很喜欢香菜"),
    ("Ich hasse Oliven", "Ich liebe Oliven"),
    ("I'm seeing Joachim", "Joachim and I split up over Easter"),
    ("我女朋友叫小雯", "我跟小雯分手了"),
    ("My husband is Bram", "Bram and I broke up"),
    ("I've sprained my right ankle", "my ankle is healed"),
    ("Mi hombro está roto", "Mi hombro está curado"),
    ("我脚踝扭伤了", "脚踝已经好了"),
    ("My laptop is a ThinkPad X1", "I got a MacBook from the new job, the ThinkPad went back"),
]
BOTH_HOLD = [  # likewise
    ("I'm vegetarian", "My husband eats meat"),
    ("I'm vegetarian", "I don't eat meat at parties either"),
    ("I'm vegetarian", "I eat fake meat quite often"),
    ("I'm vegetarian", "I eat meat substitutes"),
    ("I'm vegetarian", "I'd love to eat meat again"),
    ("I'm vegetarian", "I used to eat meat"),
    ("I'm vegetarian", "I eat bread and pasta"),
    ("I'm vegan", "I eat vegan cheese"),
    ("Soy vegano", "Mi hijo come carne"),
    ("我吃素", "我不吃肉"),
    ("我吃素", "我老公爱吃肉"),
    ("I don't drink coffee after noon", "I drink coffee again"),
    ("I don't work on Fridays", "I work on Mondays again"),
    ("I don't work on Fridays", "My brother works again"),
    ("I love coriander", "I hate coriander seeds in bread"),
    ("I hate mushrooms", "I love mushroom risotto"),
    ("I hate flying", "My son loves flying"),
    ("I like jazz", "I don't like techno"),
    ("我讨厌香菜", "我喜欢香菇"),
    ("我讨厌香菜", "我女儿喜欢香菜"),
    ("I'm seeing Joachim", "Wanda and Pit split up"),
    ("My friend Joachim sails", "Joachim and Eva split up"),
    ("我女朋友叫小雯", "我同事小丽分手了"),
    ("I've sprained my right ankle", "My wrist is healed"),
    ("I've sprained my ankle", "My sister's ankle is healed"),
    ("I've sprained my ankle", "my ankle is not healed"),
    ("I live in Utrecht", "I used to live in Leuven as a student"),
    ("I play the cello", "I used to play the flute"),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_what_cannot_hold_beside_the_newer_statement_falls(older: str, newer: str) -> None:
    assert may_change(newer)
    assert compare(newer, older) is not None


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_what_only_looks_like_its_opposite_stays(older: str, newer: str) -> None:
    assert compare(newer, older) is None
