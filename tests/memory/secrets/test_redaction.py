"""What is put in a secret's place, by whose policy; and a text without secrets comes back as it was."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import NotRecordable
from memory.secrets import redaction
from memory.secrets.plain_text import PLACEHOLDER
from memory.secrets.redaction import (
    RECORDED_CHARACTERS_MAX,
    REDACT_ALL,
    SLICE_CHARACTERS,
    SecretPolicy,
    recordable,
    redact,
)
from memory.secrets.secret_classes import SecretClass, Span
from memory.secrets.vocabulary import languages

KEY = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v"
TOLD = {
    SecretClass.API_KEY: f"My key is {KEY} and my cat is called Tom.",
    SecretClass.TOKEN: "I got token=4f9aQ2LmZ81xTtR0wBvKc7Ue, and my cat is called Tom.",
    SecretClass.PASSWORD: "My PIN is 8812, and my cat is called Tom.",
    SecretClass.PRIVATE_KEY: "-----BEGIN PRIVATE KEY-----\nMIIEa1\n-----END PRIVATE KEY-----\nMy cat is called Tom.",
    SecretClass.CARD_NUMBER: "My card is 4111 1111 1111 1111, and my cat is called Tom.",
    SecretClass.BANK_ACCOUNT: "My account number is 50093321, and my cat is called Tom.",
    SecretClass.NATIONAL_ID: "My SSN is 536-90-4399, and my cat is called Tom.",
}
PIECES = st.sampled_from(
    """my password|PIN|token|secret|is|:|=|,|.| |\n|hunter2|4471|blue-otter-42|密码|是|[redacted password]|for the|it's|
    [withheld token]|4111 1111 1111 1111|and|"|'|`|//|@|a1B2c3D4e5F6g7H8|-----BEGIN RSA PRIVATE KEY-----|code|door|
    -----END RSA PRIVATE KEY-----|one two three|Passwort|lautet|536-90-4399|İ|\0""".split("|")
)


@pytest.mark.parametrize("kind", SecretClass)
def test_each_class_is_redacted_allowed_or_takes_the_text_with_it(kind: SecretClass) -> None:
    keys = {SecretClass.API_KEY, SecretClass.TOKEN}  # one may look like the other
    allowed = dict.fromkeys(keys if kind in keys else {kind}, SecretPolicy.ALLOW)
    dropping = {**REDACT_ALL, kind: SecretPolicy.DROP}
    words = kind.value.replace("_", " ")
    assert f"[redacted {words}]" in redact(TOLD[kind])
    assert redact(TOLD[kind]).endswith("y cat is called Tom.")
    assert redact(TOLD[kind], allowed) == TOLD[kind]
    assert redact(TOLD[kind], dropping) == f"[withheld {words}]"
    assert redact("My cat is called Tom.", dropping) == "My cat is called Tom."


def test_of_two_classes_each_keeps_its_policy() -> None:
    text = "my password is tiger-lamp-44 and my card is 4111 1111 1111 1111"
    allowing = {**REDACT_ALL, SecretClass.CARD_NUMBER: SecretPolicy.ALLOW}
    assert redact(text, allowing) == "my password is [redacted password] and my card is 4111 1111 1111 1111"


@pytest.mark.parametrize(
    "text",
    [
        "my wifi password is [redacted password] and the router is in the pantry",
        "[redacted password] is my password",
        "password: [redacted password], [redacted password]",
        "[withheld api key]",
        "token=[redacted token]\nname = Anna1985",
    ],
)
def test_placeholders_are_never_taken_for_secrets(text: str) -> None:
    assert redact(text) is text
    assert PLACEHOLDER.search(text)


LABELS = st.sampled_from([word for language in languages() for one in language.labels for word in one.words])
MARKS = st.sampled_from(
    ['"', "'", "`", "*", "\\", ": ", " is ", " = ", '"', "“", "：", "", " ", "\n", "1", "a", "/", ",", "-"]
)
TEXTS = {
    "any": st.text(max_size=400),
    "labels and values": st.lists(PIECES, max_size=30).map("".join),
    "labels and values apart": st.lists(PIECES, max_size=30).map(" ".join),
    "whatever follows a label": st.lists(st.one_of(LABELS, MARKS, st.text(max_size=3)), max_size=8).map("".join),
}


@pytest.mark.parametrize("kind", TEXTS)
@given(st.data())
def test_a_text_is_redacted_once_and_for_all(kind: str, data: st.DataObject) -> None:
    redacted = redact(data.draw(TEXTS[kind]))
    assert redact(redacted) == redacted


@given(st.text(st.sampled_from("abcdefgXYZ!#$%&*+-_.?@^~,;:()[]{}<>/|=19"), min_size=10, max_size=24))
def test_of_a_password_that_is_found_no_part_is_left(password: str) -> None:
    redacted = redact(f"my wifi password is {password} and the router is old")
    core = password.rstrip(".,;:)]}>?!*")
    parts = [core[at : at + 4] for at in range(len(core) - 3)]
    assert "[redacted " not in redacted or not any(part in redacted for part in parts if part.isalnum())


@pytest.mark.parametrize("told", ["{} The rest is long. {}", "{} {} My PIN is 8812."], ids=["nowhere", "at its end"])
def test_a_very_long_message_is_dropped_whole_for_a_secret_at_its_end(told: str) -> None:
    dropping = {**REDACT_ALL, SecretClass.PASSWORD: SecretPolicy.DROP}
    text = told.format("I live in Porto.", "well " * 1_000)
    kept = recordable(text, policy=dropping, characters_max=2_000)
    assert (kept == "[withheld password]") is ("8812" in text)
    assert "8812" not in kept


def test_a_text_that_is_not_very_long_is_only_redacted() -> None:
    assert recordable("My cat is Tom.") == "My cat is Tom."
    assert len(recordable("word " * RECORDED_CHARACTERS_MAX)) <= RECORDED_CHARACTERS_MAX + 10


def test_of_a_very_long_text_the_beginning_and_the_end_are_recorded_without_half_a_secret() -> None:
    for offset in range(0, 60, 3):
        text = "I live in Porto. " + "x " * (490 - offset // 2) + KEY + " " + "y " * 5_000 + f" {KEY} My cat is Tom."
        kept = recordable(text, characters_max=2_000)
        assert len(kept) <= 2_100
        assert kept.startswith("I live in Porto.")
        assert kept.endswith("My cat is Tom.")
        assert "sk-proj" not in kept
        assert KEY[-8:] not in kept


def test_a_private_key_that_the_cut_would_halve_is_left_out_whole() -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] * 100)
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    kept = recordable("Hello. " + "a " * 300 + pem + "b " * 3_000 + pem + "Bye.", characters_max=2_000)
    assert "MIIEvQ" not in kept
    assert kept.endswith("Bye.")


@pytest.mark.parametrize(
    "label", ["security answer", "my mother's maiden name", "PIN", "password", "api key", "seed phrase"]
)
@pytest.mark.parametrize("behind", [': "', ": '", ": `", ' "', " is “", ': " ', ': "\n'])
def test_a_quotation_that_opens_and_ends_with_the_text_is_no_value(label: str, behind: str) -> None:
    assert redact(label + behind) == label + behind


def test_what_could_not_be_looked_through_is_not_recorded_and_none_of_it_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, pause: object) -> list[Span]:
        raise IndexError(text)

    monkeypatch.setattr(redaction, "secret_spans", broken)
    with pytest.raises(NotRecordable, match="IndexError") as raised:
        recordable("my door is red")
    assert "door" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("kind", SecretClass)
def test_a_secret_is_found_wherever_the_slices_of_a_long_text_meet(kind: SecretClass) -> None:
    told = TOLD[kind].removesuffix("My cat is called Tom.").removesuffix(" and my cat is called Tom.")
    expected, pauses = redact(told), list[int]()
    for offset in range(0, len(told) + 2, 3):
        before = "I went home. " * (2 * SLICE_CHARACTERS // 13)
        before = "x" * (2 * SLICE_CHARACTERS - offset - len(before) - 1) + " " + before
        text = f"{before}{told} Tom."
        assert redact(text, pause=lambda: pauses.append(1)) == f"{before}{expected} Tom."
    assert pauses


# Time in proportion to a text, whatever it is made of; bench/redaction.py says how much

SECONDS_MAX = 4.0  # at most 1.2 s on a quiet core; what grows with the square takes a minute and more


@pytest.mark.soak("judges the processor's time")
@pytest.mark.parametrize(
    "piece",
    [
        *("我今天去了公园，天气很好，然后和朋友一起吃饭。", "，我", "密码", "word-Word-", " ", "\n", "İ"),
        *("aB1!", "1234-", "1234 5678 ", "DE89 ", "AB12-", "4111 1111 1111 1111 ", "[redacted password] "),
        *("my pin ", 'password: "', 'security answer: "', "PIN: `", "seed phrase: '", "pin: 1,", "pin one one one "),
        *("password=", "my password is on the fridge, ", "my password is long" + " " * 150, "hunter2 is my password, "),
        *("my password is " + "aaa " * 40, "seed phrase is apple tree ", "code for the ", "api_key='x1y2z3w4v5u6' "),
        *("token=4f9aQ2LmZ81xTtR0wBvKc7Ue1 ", "://a:b@", "-----BEGIN PRIVATE KEY-----", '{"key":"value12","n":1},'),
    ],
)
def test_a_long_text_of_one_piece_is_looked_through_in_time(piece: str) -> None:
    text = (piece * RECORDED_CHARACTERS_MAX)[:RECORDED_CHARACTERS_MAX]
    begun = time.process_time()
    recordable(text)
    assert time.process_time() - begun < SECONDS_MAX
