"""Keys, numbers and phrases are known by shape, check digits, a label or a list of words, wherever prose puts them."""

from __future__ import annotations

import random
import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from mnemonic import Mnemonic

from memory.secrets.id_numbers import forms, is_phone_number
from memory.secrets.redaction import SLICE_CHARACTERS, redact, secret_spans
from memory.secrets.secret_classes import SecretClass
from memory.secrets.vendor_tokens import private_key_spans

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
PROSE = ["so I put {} in the file", "here it is: {}.", "my key is {}, thanks", "把{}填进去，谢谢", "`{}`", "<b>{}</b>"]


@pytest.mark.parametrize("template", PROSE)
@pytest.mark.parametrize("vendor", TOKENS)
def test_a_token_is_taken_out_whole_wherever_prose_puts_it(vendor: str, template: str) -> None:
    token = TOKENS[vendor]
    redacted = redact(template.format(token))
    assert "[redacted " in redacted
    assert not any(token[at : at + 6] in redacted for at in range(len(token) - 5))


def test_it_goes_each_time_and_the_full_stop_after_it_stays_so_that_the_next_sentence_is_its_own() -> None:
    text = f"My API key is {TOKENS['openai']}. My terrier is called Biscuit."
    assert redact(text) == "My API key is [redacted api key]. My terrier is called Biscuit."
    token = TOKENS["stripe"]
    assert redact(f"{token} and {token}, {token}").count("[redacted token]") == 3


@pytest.mark.parametrize("mark", ["# gitleaks:allow", "# betterleaks:allow", "\0", "\ud800"])
def test_no_mark_in_a_text_keeps_a_token_from_being_found(mark: str) -> None:
    token = TOKENS["github"]
    assert token not in redact(f"{mark} x = {token} {mark}")


@pytest.mark.parametrize("filler", ["I like cats. ", "one\n", "x" * 50 + " ", "猫"])
def test_a_token_is_found_on_every_border_between_slices_of_a_long_text(filler: str) -> None:
    token = TOKENS["github"]
    for shift in range(0, 400, 37):
        lead = (filler * SLICE_CHARACTERS)[: SLICE_CHARACTERS - shift]
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


def test_one_that_is_cut_off_goes_to_the_end_and_a_public_key_is_no_secret() -> None:
    assert redact("x -----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF cut") == "x [redacted private key]"
    text = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----"
    assert list(private_key_spans(text)) == []
    assert redact(text) == text


def test_many_threads_may_look_at_once() -> None:
    texts = [f"PIN {number} and {TOKENS['github']}" for number in range(1_000, 1_100)]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(redact, texts)) == {"PIN [redacted password] and [redacted api key]"}


# Numbers of cards, accounts and people

CARD, BANK, PERSON = "[redacted card number]", "[redacted bank account]", "[redacted national id]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a card by two of check digit, groups and label
        ("card 4111 1111 1111 1111", f"card {CARD}"),
        ("my visa is ４１１１１１１１１１１１１１１１", f"my visa is {CARD}"),
        ("my amex 378282246310005", f"my amex {CARD}"),
        ("please charge 4012888888881881 again", f"please charge {CARD} again"),
        ("card number 4539 1111 2222 3333 please", f"card number {CARD} please"),  # mistyped, yet announced
        ("5555 5555 5555 4444 09/28", f"{CARD} 09/28"),
        ("信用卡 5105105105105100", f"信用卡 {CARD}"),
        # an IBAN by its check digits
        ("IBAN GB82 WEST 1234 5698 7654 32 is mine", f"IBAN {BANK} is mine"),
        ("ES9121000418450200051332", BANK),
        ("My IBAN is de89370400440532013000", f"My IBAN is {BANK}"),
        ("Meine IBAN lautet DE11 5001 0517 5407 3249 30", f"Meine IBAN lautet {BANK}"),  # mistyped, yet announced
        # an id by its form and check, or by its label
        ("536-90-4399 is my social", f"{PERSON} is my social"),
        ("11010519491231002X", PERSON),
        ("12345678Z", PERSON),
        ("X1234567L", PERSON),
        ("o meu: 111.444.777-35", f"o meu: {PERSON}"),
        ("RSSMRA85T10A562S", PERSON),
        ("the form wants AB 11 22 33 C from me", f"the form wants {PERSON} from me"),
        ("Für die Steuer-ID habe ich 65929970489 eingetragen", f"Für die Steuer-ID habe ich {PERSON} eingetragen"),
        ("my SSN is 536 90 4399", f"my SSN is {PERSON}"),
        ("330299198706120043", PERSON),  # of a county that python-stdnum does not list
        ("身份证 330299198706120047", f"身份证 {PERSON}"),  # mistyped, yet announced
        ("NHS number: 943 476 5919", f"NHS number: {PERSON}"),
    ],
)
def test_numbers_are_known_by_their_form_their_check_digits_or_their_label(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_telephone_numbers_are_told_from_ids_and_every_check_that_the_file_names_exists() -> None:
    assert is_phone_number("020 7946 0958")
    assert is_phone_number("0171 2345678")
    assert not is_phone_number("65929970489")
    assert not any(form.is_valid("") for known in forms().values() for form in known)


@pytest.mark.parametrize(
    "text",
    [
        # numbers of other things: the check digit alone is right once in ten
        *("order 4012888888881881 is late", "my order 1234.5678.9012.3456 is late", "ticket 4539 1111 2222 3333"),
        *("timestamp 1704447000000", "EAN 4006381333931", "my student card has number 20231145", "0000 0000 0000 0000"),
        *("a card, and later: order 1234567890123456", "the train de89 leaves at 12", "订单号 20240105123456789"),
        *("tracking code 1Z999AA10123456784", "lat 52.520008, lon 13.404954", "2024-01-05 10:30:00", "10.0.19045.3803"),
        # no such account or area, and wrong check characters
        *("send it to DE88 3704 0044 0532 0130 00", "666-90-4399", "110105194912310021", "12345678A", "111.444.777-36"),
        # right check digits, but nothing says what it is
        *("my number is 65929970489", "My part is 529.982.247-26"),
        # telephones
        *("call the NHS on 020 7946 0958", "call 555-012-3456 or +1 (555) 010-9999", "my phone number is 0171 2345678"),
        "电话 13812345678",
        # addresses and paths
        *("https://{user}:{password}@host/", "http://localhost:8080/a@b", "aws_access_key: AKIAIOSFODNN7EXAMPLE"),
        "see https://example.org/@anna and mail anna@example.org",
        "https://docs.example.org/document/d/1W7KCxOxP-1Fy5EyF2lbJGE2WuKmu5v0suYqoHas1jRM",
        "src/components/Button/PrimaryButton/index.tsx is the file",
    ],
)
def test_look_alikes_and_other_long_numbers_stay(text: str) -> None:
    assert redact(text) == text


# Recovery phrases

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
