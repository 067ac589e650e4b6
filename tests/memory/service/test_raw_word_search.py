"""Which rows with raw words go with a forgotten memory: those that say the same, and all of their turn."""

from __future__ import annotations

import pytest

from memory.service.raw_word_search import Statements

STATEMENT = "I live in Ulm."


@pytest.mark.parametrize(
    "text",
    [
        "I live in Ulm.",
        "well, i LIVE\n in\tulm, you know",
        "“I live in Ulm”",
        "It is true: I live in Ulm!",
        "I  live in ULM",
    ],
)
def test_case_white_space_and_punctuation_at_the_edges_do_not_matter(text: str) -> None:
    assert Statements([STATEMENT]).are_in(text)


@pytest.mark.parametrize("text", ["I live in Ulmen.", "I live in New Ulm.", "I lived in Ulm", "Ulm", ""])
def test_words_that_are_others_do(text: str) -> None:
    assert not Statements([STATEMENT]).are_in(text)


@pytest.mark.parametrize("statement", ["", " ", "tea", "ok!", "yes. ", "...", "a"])
def test_a_single_word_says_too_little(statement: str) -> None:
    said = Statements([statement])
    assert not said
    assert not said.are_in(f"{statement} and {statement}")


def test_a_short_statement_of_two_words_and_one_without_spaces_are_found() -> None:
    assert Statements(["a b"]).are_in("so A  B it is")
    assert Statements(["私は東京に住んでいます"]).are_in("そうです、私は東京に住んでいます")


def test_of_many_statements_that_begin_alike_each_is_found() -> None:
    said = Statements(f"My favourite number is {number}." for number in range(300))
    assert all(said.are_in(f"I said my favourite number is {number}") for number in range(300))
    assert not said.are_in("My favourite number is 300")
