"""What is told beside a fact in the same clause outlives it: who is vegan no more is still allergic."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import Verdict, compare
from memory.learn.words.clauses import PARTS_MAX, parts_of

JOINED = [
    # (said later, known, what of it still holds)
    ("I'm not vegan any more.", "I'm vegan and allergic to shellfish.", "I'm allergic to shellfish"),
    ("I'm no longer a vegetarian.", "I'm a vegetarian and a nurse.", "I'm a nurse"),
    ("I got married.", "I'm single and 34.", "I'm 34"),
    ("Tim is 9 now.", "My son Tim is 8 and afraid of dogs.", "My son Tim is afraid of dogs"),
    ("Ada is 6 now.", "My daughter Ada is 5 and lactose intolerant.", "My daughter Ada is lactose intolerant"),
    ("I moved to Bath.", "I live in Hull and work at Bosch.", "I work at Bosch"),
    ("My dog died.", "I have a dog and a horse.", "I have a horse"),
    ("I sold the piano.", "I have a piano, a cello and a violin.", "I have a cello and a violin"),
    ("I gave up tennis.", "I play tennis and chess.", "I play chess"),
    ("I gave up tennis.", "I play tennis and sing in a choir.", "I sing in a choir"),
    ("I stopped learning Danish.", "I learn Danish and Polish.", "I learn Polish"),
    ("I stopped smoking.", "I smoke and drink.", "I drink"),
    ("Leo moved to Bonn.", "My sons Leo and Max live in Ulm.", "My sons Max live in Ulm"),
]
ENDED = [
    ("I'm not vegan any more.", "I'm vegan."),
    ("I moved to Bath.", "I live in Hull."),
    ("My dog died.", "I have a dog."),
    ("I gave up tennis.", "I play tennis."),
    ("I moved to Bath.", "I live in Hull and Leeds."),
    ("Tim is 9 now.", "My son Tim is 8."),
]
UNSURE = [
    ("I eat fish now, so I'm pescatarian.", "I'm vegetarian, going on ten years."),
    ("Keep your answers to one sentence from now on.", "I like my answers detailed and formal."),
]


@pytest.mark.parametrize(("said", "known", "left"), JOINED)
def test_a_fact_joined_to_one_that_ends_still_holds(said: str, known: str, left: str) -> None:
    assert compare(said, known) == Verdict(left)


@pytest.mark.parametrize(("said", "known"), [*ENDED, *UNSURE])
def test_a_fact_that_stands_alone_ends_as_a_whole(said: str, known: str) -> None:
    assert compare(said, known) == Verdict("")


@pytest.mark.parametrize("unit", [" and a", ", ", "I'm a and ", "Aa and ", "我有猫和", " " * 9 + "and"])
def test_an_endless_list_is_cut_into_few_parts_or_none(unit: str) -> None:
    for opening in ("", "I'm vegan", "I have a cat", "My sons "):
        long = (opening + unit * 65_536)[:65_536]
        assert len(parts_of(long + ",")) <= PARTS_MAX
