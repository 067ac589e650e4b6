"""Which of several is meant: the other sister, the plan with the other letter, the knee of the other side."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare
from memory.learn.words.terms import terms

OF_TWO = [
    ("My ex-husband lives in Ghent.", "My husband lives in Lille."),
    ("My mother-in-law moved to Rome.", "My mother lives in Turin."),
    ("My brother-in-law is 42.", "My brother is 40."),
    ("My other brother lives in Cork.", "My brother lives in Derry."),
    ("My half-sister is 12.", "My sister is 10."),
    ("My second son is 6.", "My son is 5."),
    ("My other daughter is 7.", "My daughter is 5."),
    ("Meine andere Schwester wohnt in Ulm.", "Meine Schwester wohnt in Trier."),
    ("Mi otra hermana vive en Vigo.", "Mi hermana vive en Lugo."),
    ("我大女儿6岁了", "我小女儿5岁"),
    ("The rent of flat B is 900 euros.", "The rent of flat A is 700 euros."),
    ("B套餐的价格是300元", "A套餐的价格是200元"),
    ("My right hip is fine again.", "My left hip hurts."),
    ("我的右膝好了", "我的左膝疼"),
]
OF_ONE = [
    ("My ex-husband moved to Ghent.", "My ex-husband lives in Lille."),
    ("My mother-in-law moved to Rome.", "My mother-in-law lives in Turin."),
    ("My brother is 41 now.", "My brother is 40."),
    ("My other brother moved to Cork.", "My other brother lives in Derry."),
    ("My old cat died.", "I have a cat."),
    ("我大女儿6岁了", "我大女儿5岁"),
    ("The rent of flat B is 900 euros now.", "The rent of flat B is 800 euros."),
    ("B套餐的价格是300元", "B套餐的价格是200元"),
    ("My left hip is fine again.", "My left hip hurts."),
    ("我的左膝好了", "我的左膝疼"),
]


@pytest.mark.parametrize(("said", "known"), OF_TWO)
def test_what_is_said_of_one_leaves_the_other_alone(said: str, known: str) -> None:
    assert compare(said, known) is None


@pytest.mark.parametrize(("said", "known"), OF_ONE)
def test_what_is_said_of_the_same_one_replaces_it(said: str, known: str) -> None:
    assert compare(said, known) is not None


def test_a_letter_that_names_is_a_word_of_matter_and_an_article_is_none() -> None:
    assert "a" in terms("we took plan A")
    assert "a" not in terms("A plan is a plan")
    assert "i" not in terms("when I was ill")
