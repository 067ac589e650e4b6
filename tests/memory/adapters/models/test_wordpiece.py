"""Token counts are those of all-MiniLM-L6-v2's WordPiece, without its end at 256."""

from __future__ import annotations

import pytest

from memory.adapters.models.wordpiece import WordPieceTokens


@pytest.fixture(scope="module")
def tokens() -> WordPieceTokens:
    return WordPieceTokens()


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("My cat is called Miso.", 7), ("unaffable", 3), ("我喜欢猫", 4), ("\ud83d", 1), ("\x00", 0)],
)
def test_words_are_cut_into_the_pieces_of_the_vocabulary(tokens: WordPieceTokens, text: str, count: int) -> None:
    assert tokens(text) == tokens(text) == count


def test_a_long_text_is_counted_to_its_end(tokens: WordPieceTokens) -> None:
    assert tokens("word " * 5_000) == 5_000
