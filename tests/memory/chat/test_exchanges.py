"""How a history falls into exchanges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.chat.exchanges import exchanges_of
from memory.model import Message

CODES = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}


def history(codes: str) -> list[Message]:
    """`u1 a2 …`: each message says its own code; `c` is a tool call of the assistant, `e` an empty answer."""
    special = {"c": Message("assistant", "call", is_tool_traffic=True), "e": Message("assistant", " ")}
    return [
        special.get(code[0]) or Message(CODES[code[0]], code, is_tool_traffic=code[0] == "t") for code in codes.split()
    ]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("u1 a1", ["u1>a1"]),
        ("s u1 a1 u2 a2", ["u1>a1", "u2>a2"]),
        ("u1 u2 a1 u3", ["u1 u2>a1", "u3>"]),
        ("a0 u1 a1", ["a0 u1>a1"]),
        ("u1 c t1 a1", ["u1>a1"]),
        ("u1 a1 a2", ["u1>a2"]),
        ("u1 e u2 a2", ["u1 u2>a2"]),
        ("u1 c t1", ["u1>"]),
        ("a1 s t1", []),
        ("", []),
    ],
)
def test_each_exchange_is_what_the_user_said_and_the_last_answer(codes: str, expected: list[str]) -> None:
    found = [" ".join(m.content for m in e.said) + ">" + e.answer for e in exchanges_of(history(codes))]
    assert found == expected


@given(st.lists(st.sampled_from(["u", "a", "s", "t", "c", "e"]), max_size=30))
def test_every_word_of_the_user_is_in_exactly_one_exchange_in_order(codes: list[str]) -> None:
    messages = history(" ".join(f"{code}{i}" for i, code in enumerate(codes)))
    said = [m for e in exchanges_of(messages) for m in e.said if m.role == "user"]
    assert said == [m for m in messages if m.role == "user"]
    assert all(e.said[-1].role == "user" for e in exchanges_of(messages))
