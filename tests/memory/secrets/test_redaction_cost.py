"""Looking for secrets takes time in proportion to a text, whatever it is made of; bench/redaction.py says how much."""

from __future__ import annotations

import time

import pytest

from memory.secrets.redaction import RECORDED_CHARACTERS_MAX, recordable

SECONDS_MAX = 4.0  # at most 1.2 s on a quiet core; what grows with the square takes a minute and more


@pytest.mark.soak("judges time")
@pytest.mark.parametrize(
    "piece",
    [
        "我今天去了公园，天气很好，然后和朋友一起吃饭。",
        "，我",
        '{"key":"value12","n":1},',
        "word-Word-",
        "aB1!",
        "1234-",
        "1234 5678 ",
        "DE89 ",
        "AB12-",
        "4111 1111 1111 1111 ",
        "my pin ",
        'password: "',
        'security answer: "',
        "PIN: `",
        "seed phrase: '",
        "pin: 1,",
        "pin one one one ",
        "密码",
        "password=",
        "my password is on the fridge, ",
        "my password is long" + " " * 150,
        "my password is " + "aaa " * 40,
        "hunter2 is my password, ",
        "seed phrase is apple tree ",
        "code for the ",
        "token=4f9aQ2LmZ81xTtR0wBvKc7Ue1 ",
        "api_key='x1y2z3w4v5u6' ",
        "://a:b@",
        "-----BEGIN PRIVATE KEY-----",
        "[redacted password] ",
        " ",
        "\n",
        "İ",
    ],
)
def test_a_long_text_of_one_piece_is_looked_through_in_time(piece: str) -> None:
    text = (piece * RECORDED_CHARACTERS_MAX)[:RECORDED_CHARACTERS_MAX]
    begun = time.process_time()
    recordable(text)
    assert time.process_time() - begun < SECONDS_MAX
