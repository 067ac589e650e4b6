""" "She" stands for somebody of the user's own only where the words before leave no doubt."""

from __future__ import annotations

import pytest
from turn_logs import a_turn

from memory.learn.statements import verbatim
from memory.learn.statements.pronouns import Antecedent, antecedent_of_head, antecedent_of_there


@pytest.mark.parametrize(
    ("statement", "before", "who"),
    [
        ("She studies architecture.", "What laptop suits my daughter?", "my daughter"),
        ("he's 9", "How do I explain fractions to my son,", "my son"),
        ("He needs insulin twice a day", "my dog Rex is sick.", "my dog Rex"),
        ("She plays the cello", "My daughter Lena has a recital. I booked a hall.", "My daughter Lena"),
        ("Sie ist sechs", "Meine Tochter Lena kommt bald.", "Meine Tochter Lena"),
        ("她膝盖不好", "推荐适合我妈妈的运动，", "我妈妈"),
        ("他喜欢恐龙", "给我8岁的儿子推荐个礼物，", "我8岁的儿子"),
        ("它不吃鱼", "我家的猫三岁了。", "我家的猫"),
        ("they're into dinosaurs", "My twins turn seven.", "My twins"),
        ("oh and she uses a wheelchair", "my sister Ingrid is staying with us", "my sister Ingrid"),
        ("from Bergen, she's a midwife there", "my sister Ingrid is staying with us", "my sister Ingrid"),
        ("她这个月起跟我们住了", "我婆婆受不了那个味。", "我婆婆"),
        ("she's five and dogs frighten her", "a bedtime story for Wren please", "Wren"),
        ("他们都退休了", "我爸妈住在苏州。", "我爸妈"),
        ("She works at night", "My husband and my sister live with us.", "my sister"),
    ],
)
def test_the_only_one_who_fits_is_meant(statement: str, before: str, who: str) -> None:
    found = antecedent_of_head(statement, [before])
    assert found is not None
    assert (found.stands_for, found.word in statement) == (who, True)


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        ("She was tired", "My mother met my sister."),
        ("He loves it", "my son and my brother went there"),
        ("She is nice", "my daughter met Emma and Emma is nice."),
        ("She hates it", "My wife's sister came"),
        ("He is strict", "My daughter's teacher came"),
        ("She lives in Milan", "my sister Mia has a friend"),
        ("He is six", "my daughter Lena"),
        ("他退休了", "我婆婆来了。"),
        ("她退休了", "我女婿来了。"),
        ("my wife says she is six", "my daughter Lena"),
        ("Maria called, she is six", "my daughter Lena"),
        ("She is six", "a story for Wren and Olmo please, Wren is tired"),
        ("They are six", "a story for Wren please"),
        ("They are six", "my daughter Lena"),
        ("They are six", "my sisters and my cats"),
        ("Sie sind da", "Meine Tochter"),
        ("她今年三岁", "我女儿和我妈妈都来了"),
        ("他们都来了", "我女儿"),
        ("She is a vet", "What does a vet do?"),
        ("I am a vet", "my sister Mia"),
    ],
)
def test_in_doubt_nobody_is_meant(statement: str, before: str) -> None:
    assert antecedent_of_head(statement, [before]) is None


def test_the_last_message_that_speaks_of_anybody_decides() -> None:
    assert antecedent_of_head("She is 80", ["my sister Mia", "my aunt Rosa"]) == Antecedent("She", "my aunt Rosa")
    assert antecedent_of_head("She is 80", ["my aunt Rosa", "what a day"]) == Antecedent("She", "my aunt Rosa")


def test_a_statement_says_whom_it_means_and_is_about_them() -> None:
    first = a_turn("first", text="My daughter Lena has a recital in May.")
    second = a_turn("second", text="She plays the cello since she was five.")
    fact = verbatim.extract([first, second])[-1]
    assert fact.content == "She plays the cello since she was five. (She: My daughter Lena)"
    assert fact.evidence.quote == "She plays the cello since she was five."
    assert fact.subject == "daughter"


def test_whom_a_pasted_text_speaks_of_is_not_meant() -> None:
    said = '"My daughter never sleeps and screams all night long." She is right about that, what a strange text'
    assert all("(She" not in fact.content for fact in verbatim.extract([a_turn("t", text=said)]))


@pytest.mark.parametrize(
    ("statement", "before", "place"),
    [
        ("my sister Pia lives there", ["how hot is it in Tallinn"], "Tallinn"),
        ("we're flying there in May", ["what can I do in New York?"], "New York"),
        ("I grew up there", ["is the river in Prague clean?", "ok, thanks"], "Prague"),
    ],
)
def test_there_is_the_only_place_spoken_of(statement: str, before: list[str], place: str) -> None:
    assert antecedent_of_there(statement, before) == Antecedent("there", place)


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        ("my sister lives there", ["is it warmer in Rome or in Oslo?"]),
        ("my sister lives there", ["what opens on Monday?"]),
        ("I have a house in Kiel and go there often", ["how hot is it in Tallinn"]),
        ("I think there is a problem", ["how hot is it in Tallinn"]),
    ],
)
def test_there_is_nowhere_in_doubt(statement: str, before: list[str]) -> None:
    assert antecedent_of_there(statement, before) is None
