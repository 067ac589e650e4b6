"""Words and numbers are found whole where a script has spaces, and anywhere where it has none."""

from __future__ import annotations

import pytest

from memory.language.word_boundaries import whole_word_positions


@pytest.mark.parametrize(
    ("words", "text", "places"),
    [
        ("11", "on 1 May at 11, room 11", [12, 21]),
        ("1", "on 1 May at 11", [3]),
        ("nan", "bananas", []),
        ("kg", "12kg", [2]),
        ("周一", "预约在周一上午", [3]),
        ("Öl", "Möl, Öl", [5]),
        ("", "anything", []),
    ],
)
def test_a_word_is_found_whole(words: str, text: str, places: list[int]) -> None:
    assert whole_word_positions(words, text) == places
