"""Looking for secrets takes time in proportion to the text, whatever that is made of: it runs beside all chats."""

from __future__ import annotations

import time

import pytest

from memory.learn.secrets.redaction import RECORDED_CHARACTERS_MAX, recordable

SECONDS_MAX = 3.0  # some 0.1 to 0.6 s on a quiet core; what grows with the square takes 20 s and more


@pytest.mark.parametrize(
    "piece",
    [
        "我今天去了公园，天气很好，然后和朋友一起吃饭。",
        "，我",
        "{'a':",
        '{"key":"value12","n":1},',
        "I am ",
        "word-Word-",
        "aB1!",
        "1234-",
        "AB12-",
        "my pin ",
        "type in 1",
        "card 1234 ",
        "the wallet words ",
        "密码",
        "is ",
    ],
)
def test_a_long_text_of_one_piece_is_looked_through_in_time(piece: str) -> None:
    text = (piece * RECORDED_CHARACTERS_MAX)[:RECORDED_CHARACTERS_MAX]
    started = time.perf_counter()
    recordable(text)
    assert time.perf_counter() - started < SECONDS_MAX
