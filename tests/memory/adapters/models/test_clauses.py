"""Where the encoder's marks cut a sentence into clauses: in whole words, and only where one surely begins."""

from __future__ import annotations

import re

import numpy as np
import pytest

from memory.adapters.models.statement_encoder import _clauses, _stretches
from memory.learn.reading.labels import TOKEN_KINDS

OUTSIDE, BEGIN, INSIDE, MAYBE = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9), (0.05, 0.25, 0.7)
UNSURE = (0.55, 0.05, 0.4)
SHARES = {"o": OUTSIDE, "B": BEGIN, "i": INSIDE, "m": MAYBE, "u": UNSURE}


def cut(text: str, marks: str) -> list[str]:
    """`marks`: one for each token, which is a word or three letters of one."""
    offsets = [match.span() for match in re.finditer(r"\w{1,3}|[^\w\s]", text)]
    shares = np.array([SHARES[mark] for mark in marks], dtype=np.float32).reshape(-1, 3)
    assert len(shares) == len(offsets)
    return [text[offsets[first][0] : offsets[stop - 1][1]] for first, stop in _clauses(shares, offsets, text)]


@pytest.mark.parametrize(
    ("text", "marks", "clauses"),
    [
        ("I am Ada, I ski", "BiioBi", ["I am Ada", "I ski"]),
        ("I am Ada and I ski", "BiioBi", ["I am Ada", "I ski"]),
        ("I am Ada and ski", "Biiom", ["I am Ada and ski"]),
        ("we ski and row far", "Biomi", ["we ski", "row far"]),
        ("we ski and row far", "Bioii", ["we ski and row far"]),
        ("we ski all row far", "Biimi", ["we ski all row far"]),
        ("we ski elephant", "Biioi", ["we ski elephant"]),
        ("we ski far out", "Biuu", ["we ski far out"]),
        ("I ski two a day.", "Biiioo", ["I ski two a day"]),
        ("I ski two a winter.", "Biiiooo", ["I ski two a"]),
        ("we ski a", "ooi", []),
        ("we ski", "oo", []),
        ("", "", []),
    ],
)
def test_a_clause_begins_behind_a_gap_or_where_it_is_rather_sure(text: str, marks: str, clauses: list[str]) -> None:
    assert cut(text, marks) == clauses


def test_a_name_is_whole_words_where_its_last_piece_is_unsure() -> None:
    text, offsets = "Saskia left", [(0, 5), (5, 6), (6, 11)]
    name, plain = (np.eye(len(TOKEN_KINDS), dtype=np.float32)[TOKEN_KINDS.index(kind)] for kind in ("name", "plain"))
    (found,) = _stretches(offsets, np.stack([name, 0.55 * plain + 0.45 * name, plain]), text)
    assert (found.kind, text[found.start : found.end]) == ("name", "Saskia")
