"""A secret is one however its parts are separated, and goes alone; what only looks like one stays."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from memory.secrets.redaction import redact, secret_spans

SEPARATORS = {
    "space": " ",
    "no-break space": "\u00a0",
    "narrow no-break space": "\u202f",
    "thin space": "\u2009",
    "figure space": "\u2007",
    "ideographic space": "\u3000",
    "two spaces": "  ",
    "tab": "\t",
    "space of no width": " \u200b",
    "word joiner": "\u2060 ",
    "mark of direction": "\u200e ",
    "soft hyphen": "\u00ad ",
    "escape of JSON": "\\u00a0",
    "escape in an escape": "\\\\u0020",
    "entity of HTML": "&nbsp;",
    "emphasis": " ** ",
    "one line on": "\n",
}
HYPHENS = {
    "hyphen": "-",
    "no-break hyphen": "\u2011",
    "figure dash": "\u2012",
    "en dash": "\u2013",
    "em dash": "\u2014",
    "minus": "\u2212",
    "full width": "\uff0d",
    "escape of JSON": "\\u002d",
    "spaces around": " - ",
    "en dash with spaces": " \u2013 ",
    "dot": ".",
    "middle dot": "·",
    "underscore": "_",
    "slash": "/",
}
SECRETS = {
    "password": ("The wifi password is Tulip!Garden9", "Tulip!Garden9"),
    "code": ("For the keypad: my PIN is 4471", "4471"),
    "key": ("Please use the api key vr-dev-8c1bR3KmY92wSsQ1vAxJd6Tf", "vr-dev-8c1bR3KmY92wSsQ1vAxJd6Tf"),
    "card": ("Please pay with 4111 1111 1111 1111", "4111 1111 1111 1111"),
    "account": ("It goes to DE54 3704 0044 0532 0172 19", "DE54 3704 0044 0532 0172 19"),
}
NUMBERS = {"card": "Please pay with {} now", "account": "It goes to {} now", "person": "SSN {} now"}
WRITTEN = {"card": "4111 1111 1111 1111", "account": "DE54 3704 0044 0532 0172 19", "person": "536 90 4399"}
TWINS = [
    "The commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the build",
    "My request id was 123e4567-e89b-12d3-a456-426614174000",
    "The IMEI of my phone is 490154203237518 and the SIM card is new",
    "My order number is 219-87-4321, it is the green armchair",
    "The years were 2002 2006 2010 2014 and 2018",
    "ISBN 978-3-16-148410-0 is on page 114 of her list",
    "Connect the LED to pin 13 and the button to pin 7",
    "My token count is 128000, and the limit is 8192 tokens a minute",
    "The PIN has 4 digits, the password 12 characters",
    "I changed my password to something stronger yesterday at 10:30",
    "public_key = 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE='",
    "Idempotency-Key: KG5LxwFBepaKHyUD",
    "api_key = '1234567890abcdef1234567890abcdef'",
    'Authorization: Bearer <token>, and then {"password": "string"}',
    "recovery phrase: write down all 12 words on paper and never share them",
    "The passphrase is saved somewhere safe, I think at home",
    "Promo code: SUMMER2024, area code 0161, error code 40417",
    "My account name is dragon_slayer99, and my pets are called Pin and Token",
    "Measured 4000 5000 6000 7000 at 52.5200, 13.4050",
    "My key\u00a0takeaway\u2011list: start\u200b early",
]


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("name", SEPARATORS)
def test_a_separator_hides_no_secret_and_only_the_secret_goes(kind: str, name: str) -> None:
    told, secret = (text.replace(" ", SEPARATORS[name]) for text in SECRETS[kind])
    before, _, after = redact(f"Hello. {told}{SEPARATORS[name]}and my cat is Tom").partition("[redacted ")
    assert before == f"Hello. {told.removesuffix(secret)}"
    assert after.partition("]")[2] == f"{SEPARATORS[name]}and my cat is Tom"


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", HYPHENS)
def test_nor_does_a_hyphen(kind: str, name: str) -> None:
    redacted = redact(NUMBERS[kind].format(WRITTEN[kind].replace(" ", HYPHENS[name])))
    before, _, after = NUMBERS[kind].partition("{}")
    assert redacted.startswith(f"{before}[redacted ")
    assert redacted.endswith(f"]{after}")


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (
            "my P\u200bI\u200bN is 4\u200b4\u200b7\u200b1\u200b, ok",
            "my P\u200bI\u200bN is [redacted password]\u200b, ok",
        ),
        (
            r'{"a": "my pass\u0077ord is Tulip\u0021Garden9\nthanks"}',
            r'{"a": "my pass\u0077ord is [redacted password]\nthanks"}',
        ),
        ("my password’s “Tulip!Garden9”, ok", "my password’s “[redacted password]”, ok"),
        ("**Password**: **Tulip!Garden9** ok", "**Password**: **[redacted password]** ok"),
        ("ｐａｓｓｗｏｒｄ：ｔｕｌｉｐ９９，ok", "ｐａｓｓｗｏｒｄ：[redacted password]，ok"),
        ("sk-proj-aB3dE5fG7hJ9\u200bkL1mN2pQ4rS6tU8v, ok", "[redacted api key], ok"),
    ],
)
def test_the_rest_stays_byte_for_byte(told: str, kept: str) -> None:
    assert redact(told) == kept


@pytest.mark.parametrize("twin", TWINS)
def test_what_only_looks_like_a_secret_stays(twin: str) -> None:
    assert redact(twin) is twin


# No text makes looking for secrets take more than its length

# What a body of 1 MB could be made of: runs of one class, and what almost is a secret.
PIECES = (
    *("a", " ", "4111 ", "\n", "\\", '"', "**", "密码", "\u00a0\u200b", "aB1!", "1234-", "://a:b@", "&#1;", "\\u0041"),
    *("my password is ", "my pin, and the password of ", "4111 1111 1111 1112 ", "DE54 3704 0044 0532 0172 18 "),
    *("api_key=sk-proj-aB3dE5fG7h ", "lumber ocean pigeon tennis orbit cradle the ", "seed phrase: apple river "),
    *("word-Word-", '{"key":"value12","n":1},', "-----BEGIN PRIVATE KEY-----", "[redacted password] "),
    *("code for the ", "hunter2 is my password, "),
)
SHORT, LONG = 4_000, 32_000  # characters: eight times as many


def steps(text: str) -> int:
    """Lines of our own that run while the text is looked through."""
    counted: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if "secrets" not in frame.f_code.co_filename:
            return None
        counted[event] += 1
        return trace

    sys.settrace(trace)
    try:
        redact(text)
    finally:
        sys.settrace(None)
    return counted["line"]


@pytest.mark.parametrize("piece", PIECES)
def test_eight_times_the_text_is_eight_times_the_work(piece: str) -> None:
    redact(piece)  # what is read once
    short, long = (steps((piece * length)[:length]) for length in (SHORT, LONG))
    assert long <= 12 * short + 2_000


@pytest.mark.parametrize("piece", PIECES)
def test_no_finder_hands_on_more_spans_than_the_text_has_characters(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    assert len(secret_spans(text)) <= len(text)
