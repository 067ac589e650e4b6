"""The thesaurus joins languages, and says nothing where it knows nothing."""

from __future__ import annotations

import pytest

from memory.recall.ranking.concepts import concepts


@pytest.mark.parametrize(
    ("question", "memory", "shared"),
    [
        ("who owes me money?", "User lent 300 euros to a neighbour", "money"),
        ("Does my father have a hobby?", "用户的爸爸每周末去钓鱼", "father"),
        ("¿Cuánto podemos gastar?", "El presupuesto es de 1.900 euros", "money"),
        ("which pet food?", "用户养了一只猫", "pet"),
        ("Welche Allergie habe ich?", "User is allergic to pollen", "diet"),
        ("a plumber near me", "Ich wohne seit Mai in Jena", "residence"),
        ("who approves my holiday?", "用户的上司姓陶", "superior"),
        ("¿cómo llego al mercado?", "I go everywhere by bike", "commute"),
    ],
)
def test_a_question_and_its_answer_meet_in_a_concept(question: str, memory: str, shared: str) -> None:
    assert shared in concepts(question) & concepts(memory)


def test_a_longer_word_hides_the_shorter_one_inside_it() -> None:
    assert "father" not in concepts("外公来了")  # grandfather
    assert "family" in concepts("外公来了")


def test_text_without_a_known_word_touches_nothing() -> None:
    assert concepts("xyzzy plugh 12345") == frozenset()
    assert concepts("") == frozenset()
