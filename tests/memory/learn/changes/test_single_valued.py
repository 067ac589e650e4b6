"""Which statements tell one attribute that has one value: only about those is a model asked whether it changed."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare
from memory.learn.llm.arbitration import may_be_changed

CHANGED = [
    ("I work as a barista at Kona Coffee", "I'm a pharmacy assistant at Boots these days"),
    ("We live in a two-room flat in Leith", "we're in a house in Portobello since last week"),
    ("My manager is Fiona, she's strict", "new boss as of Monday: Rakesh. Much more relaxed"),
    ("My car is a blue Fiat Panda", "the car is a Kia Niro, electric."),
    ("Deadline for the thesis is 1 September", "the thesis is due on 15 October"),
    ("I take metformin 500 mg twice a day", "doctor put me on 1000 mg metformin twice a day"),
    ("Our stand-up is at 9:15 in room Birch", "stand-up is at 10 in room Oak"),
    ("the router sits in the hall", "the router sits in the attic, behind the boiler"),
    ("Our wedding venue is Harrow Barn", "the venue is the Glasshouse in the end"),
    ("I'm learning Portuguese on Duolingo", "gave up Portuguese, doing Italian at evening school"),
    ("The bins go out on Mondays", "bins go out on Fridays, new council schedule"),
    ("Ich fahre einen alten Passat", "Ich fahre einen Skoda Enyaq"),
    ("Mi oficina está en la calle Mayor", "Mi oficina está en la plaza Nueva"),
    ("我在一家旅行社上班，做导游", "我在出版社做编辑，刚入职一个月"),
    ("我的健身教练是阿强，每周二上课", "教练换成大刘了，还是周二"),
    ("我用的手机是小米", "我用的手机是华为"),
    ("Mein Hausarzt ist Dr. Benning", "Mein Hausarzt ist Frau Dr. Tilly"),
]
BOTH_HOLD = [
    ("My sister Ruth lives in Bergen", "my sister Hanne lives in Malmö"),  # two people
    ("My dentist is Dr Faye", "My lawyer is Mr Odum"),  # two roles
    ("My work phone is a Pixel", "My phone is an iPhone"),  # two of one sort
    ("My desk is by the window", "My desk is a standing desk"),  # where, and what
    ("My car is a Fiat", "My car needs new tyres"),  # what, and a passing state
    ("My brother is a nurse", "My brother is a father of two"),  # people are several things
    ("My brother is a nurse", "My brother is 34"),
    ("My boss is Fiona", "My boss is on holiday until Monday"),
    ("My phone is a Pixel 6", "My phone has a cracked screen"),
    ("My gym is PureFit", "My gym is open until ten"),
    ("I work at Siemens", "I work from home on Fridays"),
    ("I live in Leith", "I live with two flatmates"),
    ("The wedding is on 4 May", "The wedding is in a castle near Bath"),
    ("I take metformin 500 mg twice a day", "I take 20 mg of lisinopril"),
    ("I swim on Mondays", "I swim on Fridays too"),
    ("我的车是丰田", "我的车是白色的"),
    ("我住在海淀", "我住在六楼"),
    ("我女儿在上海读大学", "我儿子在成都读高中"),
    ("Our stand-up is at 9:15 in room Birch", "our stand-up stays at 9:15"),  # the user says that it stays
    ("My work phone is a Pixel", "my phone is a Nokia"),
    ("My sister Ruth lives in Bergen", "Ruth stopped smoking"),  # an end of something else
    ("I live in Leeds", "When I was twelve, I moved to Spain"),  # long ago
]


@pytest.mark.parametrize(("older", "newer"), CHANGED)
def test_another_value_of_one_attribute_may_replace_the_first(older: str, newer: str) -> None:
    assert may_be_changed(newer, older)


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_what_can_hold_beside_it_replaces_nothing_whatever_a_model_says(older: str, newer: str) -> None:
    assert not may_be_changed(newer, older)


@pytest.mark.parametrize(("older", "newer"), CHANGED)
def test_the_same_once_more_replaces_nothing(older: str, newer: str) -> None:
    assert not may_be_changed(older, older)
    assert not may_be_changed(newer, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My manager is Fiona", "my new boss is Rakesh now"),
        ("We live in a two-room flat in Leith", "we're in a house in Portobello since last week"),
        ("I work as a barista at Kona Coffee", "I'm a pharmacy assistant at Boots these days"),
    ],
)
def test_where_a_word_of_change_falls_rules_need_no_model(older: str, newer: str) -> None:
    assert compare(newer, older) is not None
