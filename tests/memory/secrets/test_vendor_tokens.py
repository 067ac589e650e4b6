"""Keys and tokens are found by their shape wherever prose puts them, and the text cannot ask for mercy."""

from __future__ import annotations

import random
import string
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory.secrets.redaction import redact
from memory.secrets.secret_classes import SecretClass
from memory.secrets.secret_spans import secret_spans
from memory.secrets.vendor_tokens import OVERLAP_CHARACTERS, PIECE_CHARACTERS, private_key_spans

_DRAW = random.Random(11)
_ALPHANUMERIC = string.ascii_letters + string.digits


def drawn(count: int, letters: str = _ALPHANUMERIC) -> str:
    return "".join(_DRAW.choices(letters, k=count))


TOKENS = {
    "github": f"ghp_{drawn(36)}",
    "gitlab": f"glpat-{drawn(20)}",
    "openai": f"sk-proj-{drawn(74)}T3BlbkFJ{drawn(74)}",
    "anthropic": f"sk-ant-api03-{drawn(93)}AA",
    "google": f"AIza{drawn(35)}",
    "slack": f"xoxb-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24)}",
    "stripe": f"sk_live_{drawn(24)}",
    "telegram": f"{drawn(10, '123456789')}:AA{drawn(33)}",
    "aws": f"AKIA{drawn(16, string.ascii_uppercase + '234567')}",
    "jwt": f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm5hIiwibmFtZSI6IkFubmEifQ.{drawn(43)}",
    "unknown vendor": f"sk-dev-{drawn(8)}4f9aQ2LmZ8{drawn(6)}",
}
PROSE = [
    "so I put {} in the file",
    "here it is: {}.",
    "my key is {}, thanks",
    "把{}填进去，谢谢",
    "({})",
    "why does `{}` fail?",
    "x={}",
    "<b>{}</b>",
    "{}",
]


@pytest.mark.parametrize("template", PROSE)
@pytest.mark.parametrize("vendor", TOKENS)
def test_a_token_is_taken_out_whole_wherever_prose_puts_it(vendor: str, template: str) -> None:
    token = TOKENS[vendor]
    redacted = redact(template.format(token))
    assert "[redacted " in redacted
    assert not any(token[at : at + 6] in redacted for at in range(len(token) - 5))


def test_the_full_stop_after_a_key_stays_so_that_the_next_sentence_is_its_own() -> None:
    text = f"My API key is {TOKENS['openai']}. My terrier is called Biscuit."
    assert redact(text) == "My API key is [redacted api key]. My terrier is called Biscuit."


@pytest.mark.parametrize("mark", ["# gitleaks:allow", "# betterleaks:allow", "\0", "\ud800"])
def test_no_mark_in_a_text_keeps_a_token_from_being_found(mark: str) -> None:
    token = TOKENS["github"]
    assert token not in redact(f"{mark} x = {token} {mark}")


def test_the_same_token_is_taken_out_each_time() -> None:
    token = TOKENS["stripe"]
    assert redact(f"{token} and {token}, {token}").count("[redacted token]") == 3


@pytest.mark.parametrize("filler", ["I like cats. ", "one\n", "x" * 50 + " ", "猫"])
def test_a_token_is_found_on_every_border_between_pieces_of_a_long_text(filler: str) -> None:
    token = TOKENS["github"]
    for shift in range(0, OVERLAP_CHARACTERS, 37):
        lead = (filler * PIECE_CHARACTERS)[: PIECE_CHARACTERS - shift]
        text = f"{lead} {token} {filler * 200}"
        assert token[-8:] not in redact(text)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("mysql://root:toor4ever@db:3306/app", "toor4ever"),
        ("https://bob:Hello123@git.example/repo", "Hello123"),
        ("redis://:Puffin77@cache:6379/0", "Puffin77"),
        ("postgres://test:test@db/shop1", ":test@"),
    ],
)
def test_the_password_of_an_address_is_taken_out(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:password@localhost/shop",
        "https://{user}:{password}@host/",
        "http://localhost:8080/a@b",
        "see https://example.org/@anna and mail anna@example.org",
        "aws_access_key: AKIAIOSFODNN7EXAMPLE",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904 broke it",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "https://docs.example.org/document/d/1W7KCxOxP-1Fy5EyF2lbJGE2WuKmu5v0suYqoHas1jRM",
        "src/components/Button/PrimaryButton/index.tsx is the file",
    ],
)
def test_examples_sums_and_addresses_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TOKENS["github"], SecretClass.API_KEY),
        (TOKENS["jwt"], SecretClass.TOKEN),
        ("postgres://clerk:Walnut!Ferry31@depot.example:5432/stock", SecretClass.PASSWORD),
    ],
)
def test_rules_are_mapped_to_the_classes_of_the_policy(text: str, kind: SecretClass) -> None:
    assert {found for _, _, found in secret_spans(text)} == {kind}


@pytest.mark.parametrize("name", ["", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED "])
def test_a_private_key_goes_from_its_first_line_to_its_last(name: str) -> None:
    pem = f"-----BEGIN {name}PRIVATE KEY-----\nMIIEabc123\n-----END {name}PRIVATE KEY-----"
    assert redact(f"look:\n{pem}\nIt is mine.") == "look:\n[redacted private key]\nIt is mine."


def test_a_private_key_that_is_cut_off_goes_to_the_end() -> None:
    assert redact("x -----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF cut") == "x [redacted private key]"


def test_a_public_key_is_no_secret() -> None:
    text = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----"
    assert list(private_key_spans(text)) == []
    assert redact(text) == text


def test_many_threads_may_look_at_once() -> None:
    texts = [f"PIN {number} and {TOKENS['github']}" for number in range(1_000, 1_100)]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(redact, texts)) == {"PIN [redacted password] and [redacted api key]"}
