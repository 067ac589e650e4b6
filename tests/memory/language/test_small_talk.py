"""Greetings, thanks and acknowledgements: the examples of the languages' files, and what holds in all of them."""

from __future__ import annotations

import pytest

from memory.language import LANGUAGES, pleasantries
from memory.language.small_talk import PLEASANTRY_CHARACTERS_MAX, is_consent, is_pleasantry, without_opening


@pytest.mark.parametrize(("text", "expected"), [e for one in LANGUAGES for e in pleasantries(one).phrases.examples])
def test_a_pleasantry_is_told_from_a_message_with_a_word_of_its_own(text: str, expected: bool) -> None:
    assert is_pleasantry(text) is expected


@pytest.mark.parametrize(("text", "expected"), [e for one in LANGUAGES for e in pleasantries(one).consent.examples])
def test_consent_is_told_from_other_replies(text: str, expected: bool) -> None:
    assert is_consent(text) is expected


@pytest.mark.parametrize(("text", "expected"), [e for one in LANGUAGES for e in pleasantries(one).openings.examples])
def test_an_opening_is_left_out(text: str, expected: str) -> None:
    assert without_opening(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "👍👍", "?!", "…"])
def test_a_message_without_a_word_is_a_pleasantry_and_no_consent(text: str) -> None:
    assert is_pleasantry(text)
    assert not is_consent(text)


@pytest.mark.parametrize("text", ["ok danke, genial, 谢谢", "谢謝", "muchisimas gracias", "ＯＫ", "that’s great"])
def test_languages_may_be_mixed_and_spelled_in_other_ways(text: str) -> None:
    assert is_pleasantry(text)


def test_nothing_long_is_only_a_greeting() -> None:
    assert is_pleasantry("ha" * (PLEASANTRY_CHARACTERS_MAX // 2))
    assert not is_pleasantry("ha" * (PLEASANTRY_CHARACTERS_MAX // 2) + " ha")


@pytest.mark.parametrize("text", ["ok " * 26 + "x", "ha" * 39 + "x", "hi" * 30 + " 好的" * 6, "太谢谢你了" * 15 + "x"])
def test_no_message_takes_more_than_one_look_at_each_word(text: str) -> None:
    """The patterns that stood here before went through every way to cut such a message: seconds, or no end at all."""
    assert is_pleasantry(text) is not text.endswith("x")
