"""Texts that consist of known phrases, as greetings do: how they are cut, and which letters may be repeated."""

from __future__ import annotations

import pytest

from memory.language.phrase_sets import PhraseSet, fill_slots
from memory.language.phrases import spellings
from memory.language.small_talk import PLEASANTRY_CHARACTERS_MAX, is_consent, is_pleasantry

KNOWN = "good|good morning|morning all|all|haha|ha|ok|666|super|hello|好的|哈".split("|")
PHRASES = PhraseSet(tokens for phrase in KNOWN for tokens in spellings(phrase))


@pytest.mark.parametrize("text", ["Good morning!", "good, ok 👍", "好的好的", "ok好的", "GOOD"])
def test_a_text_of_known_phrases_is_made_up_of_them(text: str) -> None:
    assert PHRASES.covers(text)


@pytest.mark.parametrize("text", ["morning", "good moon", "好", "ok?x", "", "👍", "$50"])
def test_a_text_with_any_word_of_its_own_or_without_one_is_not(text: str) -> None:
    assert not PHRASES.covers(text)


def test_a_cut_is_found_where_the_longest_phrase_first_leads_nowhere() -> None:
    assert PHRASES.covers("good morning all")
    assert PHRASES.covers("ok good good morning all all")


@pytest.mark.parametrize(
    "text", ["okkk", "okk", "hellooo", "heeelllooo", "gooood", "hahahahah", "okok", "666666", "哈哈哈"]
)
def test_letters_and_syllables_repeated_for_emphasis_are_read_as_the_word(text: str) -> None:
    assert PHRASES.covers(text)


@pytest.mark.parametrize("text", ["supper", "god", "helo", "66", "6", "hah", "gok"])
def test_another_word_is_not_taken_for_an_emphasised_one(text: str) -> None:
    assert not PHRASES.covers(text)


def test_slots_are_filled_with_each_of_their_phrases_and_optional_ones_left_out() -> None:
    slots = {"so": ("so", "very"), "nice": ("nice", "schön")}
    found = fill_slots(("it is {so?} {nice}",), slots)
    ends = {"nice", "schön", "schoen", "schon"}
    assert {" ".join(tokens) for tokens in found} == {f"it is {so}{end}" for so in ("", "so ", "very ") for end in ends}


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
