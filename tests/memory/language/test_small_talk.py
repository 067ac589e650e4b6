"""Messages that only greet, thank or acknowledge: how they are cut into known phrases."""

from __future__ import annotations

import pytest

from memory.language.small_talk import PLEASANTRY_CHARACTERS_MAX, fill_slots, is_pleasantry


@pytest.mark.parametrize("text", ["Good morning!", "good, ok 👍", "好的好的", "ok好的", "GOOD", "哈哈哈"])
def test_a_text_of_known_phrases_is_a_pleasantry(text: str) -> None:
    assert is_pleasantry(text)


@pytest.mark.parametrize("text", ["of", "good moon", "ok?x", "$50", "supper", "66", "6", "gok"])
def test_a_text_with_any_word_of_its_own_is_none(text: str) -> None:
    assert not is_pleasantry(text)


def test_a_cut_is_found_where_the_longest_phrase_first_leads_nowhere() -> None:
    assert is_pleasantry("good morning all set")
    assert is_pleasantry("ok good good morning all all")


def test_slots_are_filled_with_each_of_their_phrases_and_optional_ones_left_out() -> None:
    slots = {"so": ("so", "very"), "nice": ("nice", "schön")}
    found = fill_slots(("it is {so?} {nice}",), slots)
    ends = {"nice", "schön", "schoen", "schon"}
    assert {" ".join(tokens) for tokens in found} == {f"it is {so}{end}" for so in ("", "so ", "very ") for end in ends}


@pytest.mark.parametrize("text", ["", "  ", "👍👍", "?!", "…"])
def test_a_message_without_a_word_is_a_pleasantry(text: str) -> None:
    assert is_pleasantry(text)


@pytest.mark.parametrize("text", ["ok danke, genial, 谢谢", "谢謝", "muchisimas gracias", "ＯＫ", "that’s great"])
def test_languages_may_be_mixed_and_spelled_in_other_ways(text: str) -> None:
    assert is_pleasantry(text)


def test_nothing_long_is_only_a_greeting() -> None:
    assert is_pleasantry("ha " * (PLEASANTRY_CHARACTERS_MAX // 3))
    assert not is_pleasantry("ha " * (PLEASANTRY_CHARACTERS_MAX // 3) + " ha")


@pytest.mark.parametrize(
    "text", ["ok " * 26 + "x", "ha " * 26 + "x", "hi " * 20 + " 好的" * 6, "太谢谢你了" * 15 + "x"]
)
def test_no_message_takes_more_than_one_look_at_each_word(text: str) -> None:
    """The patterns that stood here before went through every way to cut such a message: seconds, or no end at all."""
    assert is_pleasantry(text) is not text.endswith("x")
