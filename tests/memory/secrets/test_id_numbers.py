"""Numbers of cards, accounts and people are known by check digits and form; what passes by chance needs a label."""

from __future__ import annotations

import pytest

from memory.secrets.id_numbers import forms, is_phone_number
from memory.secrets.redaction import redact

CARD, BANK, PERSON = "[redacted card number]", "[redacted bank account]", "[redacted national id]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card 4111 1111 1111 1111", f"card {CARD}"),
        ("4111-1111-1111-1111 is what I pay with", f"{CARD} is what I pay with"),
        ("card 4111.1111.1111.1111", f"card {CARD}"),
        ("my visa is ４１１１１１１１１１１１１１１１", f"my visa is {CARD}"),
        ("my amex 378282246310005", f"my amex {CARD}"),
        ("please charge 4012888888881881 again", f"please charge {CARD} again"),
        ("card number 4539 1111 2222 3333 please", f"card number {CARD} please"),  # mistyped, yet announced
        ("5555 5555 5555 4444 09/28", f"{CARD} 09/28"),
        ("信用卡 5105105105105100", f"信用卡 {CARD}"),
    ],
)
def test_a_card_is_known_by_two_of_check_digit_groups_and_label(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "order 4012888888881881 is late",  # the check digit alone is right once in ten
        "my order 1234.5678.9012.3456 is late",
        "ticket 4539 1111 2222 3333",
        "timestamp 1704447000000",
        "IMEI 490154203237518",
        "ISBN 978-3-16-148410-0",
        "EAN 4006381333931",
        "my student card has number 20231145",
        "0000 0000 0000 0000",
        "a card, and later: order 1234567890123456",
    ],
)
def test_other_long_numbers_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IBAN GB82 WEST 1234 5698 7654 32 is mine", f"IBAN {BANK} is mine"),
        ("ES9121000418450200051332", BANK),
        ("My IBAN is de89370400440532013000", f"My IBAN is {BANK}"),
        ("send it to DE89 3704 0044 0532 0130 00, please", f"send it to {BANK}, please"),
        ("Meine IBAN lautet DE11 5001 0517 5407 3249 30", f"Meine IBAN lautet {BANK}"),  # mistyped, yet announced
    ],
)
def test_an_iban_is_known_by_its_check_digits(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize("text", ["send it to DE88 3704 0044 0532 0130 00", "the train de89 leaves at 12"])
def test_what_is_no_iban_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
def test_an_id_is_known_by_its_form_and_check_or_by_its_label(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "666-90-4399",  # no such area
        "110105194912310021",  # wrong check character
        "12345678A",
        "111.444.777-36",
        "my number is 65929970489",  # a right check digit, but nothing says what it is
        "My part is 529.982.247-26",
        "call the NHS on 020 7946 0958",
        "call 555-012-3456 or +1 (555) 010-9999",
        "my phone number is 0171 2345678",
        "电话 13812345678",
        "tracking code 1Z999AA10123456784",
        "lat 52.520008, lon 13.404954",
        "2024-01-05 10:30:00",
        "10.0.19045.3803",
        "version 4.2.1",
        "订单号 20240105123456789",
    ],
)
def test_look_alikes_of_ids_stay(text: str) -> None:
    assert redact(text) == text


def test_telephone_numbers_are_told_from_ids() -> None:
    assert is_phone_number("020 7946 0958")
    assert is_phone_number("0171 2345678")
    assert not is_phone_number("65929970489")


def test_every_check_that_the_file_names_exists() -> None:
    assert all(callable(form.is_valid) for known in forms().values() for form in known)
    assert not any(form.is_valid("") for known in forms().values() for form in known)
