"""Recovery phrases are found by the lists of their words; what people list otherwise is not."""

from __future__ import annotations

import pytest
from mnemonic import Mnemonic

from memory.secrets.redaction import redact

SHOPPING = "tomato, garlic, onion, salt, pepper, butter, bread, milk, cheese, rice, sugar, egg, lemon"
# One word is of no list, so that no check digits can be right.
MISSPELT = "lumber ocean pigeon vapor tennis orbit cradle mimic salad hovver fabric acid"


def phrase(language: str, bits: int = 128) -> str:
    return Mnemonic(language).to_mnemonic(bytes(range(7, 7 + bits // 8)))


@pytest.mark.parametrize("language", ["english", "spanish", "french", "italian", "chinese_simplified"])
@pytest.mark.parametrize("bits", [128, 256])
def test_a_phrase_with_check_digits_needs_no_label(language: str, bits: int) -> None:
    text = f"I keep this in a drawer: {phrase(language, bits)}. What do I do with it?"
    assert redact(text) == "I keep this in a drawer: [redacted password]. What do I do with it?"


@pytest.mark.parametrize("by", ["{word} ", "{word}, ", "{word}\n", "{word}-", "{word} | ", "{number}. {word}\n"])
def test_its_words_may_be_separated_in_any_way_or_numbered(by: str) -> None:
    words = enumerate(phrase("english").split(), 1)
    written = "".join(by.format(number=number, word=word) for number, word in words).rstrip(" ,|-\n")
    begin = by.format(number=1, word="").rstrip(" ,|-\n")
    assert redact(f"Mine: {written}") == f"Mine: {begin} [redacted password]".replace("  ", " ")


def test_a_phrase_that_is_misspelt_is_one_all_the_same() -> None:
    assert redact(f"Is it right? {MISSPELT}") == "Is it right? [redacted password]"


@pytest.mark.parametrize(
    "text",
    [
        f"To buy: {SHOPPING}",
        "To buy:\n" + SHOPPING.replace(", ", "\n"),
        "You must hold this because there is more than one ocean and the river will bring that stone into the forest",
        " ".join(MISSPELT.split()[:8]),
    ],
)
def test_what_people_list_or_say_otherwise_is_kept(text: str) -> None:
    assert redact(text) is text
