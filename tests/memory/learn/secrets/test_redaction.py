"""Secrets are taken out before anything is written, and what only looks like one stays."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.learn.secrets.redaction import PLACEHOLDER, REDACT_ALL, SecretClass, SecretPolicy, recordable, redact
from memory.learn.secrets.secret_spans import iban_length, is_brazilian_id, is_chinese_id, passes_luhn

SECRETS = [
    ("my password is tiger-lamp-44", "tiger-lamp-44"),
    ("Password: Sunny!Day7", "Sunny!Day7"),
    ("pw: hunter2", "hunter2"),
    ("pass: s3cr3t!!", "s3cr3t!!"),
    ("the wifi password for the cabin is OakTree9", "OakTree9"),
    ("my laptop password is swordfish", "swordfish"),
    ("log in as kim with password Rain_8_fall please", "Rain_8_fall"),
    ("my passphrase is correct horse battery staple, keep it safe", "correct horse battery staple"),
    ("the seed phrase is apple river stone cloud paper tiger lamp ocean wheel candle forest bridge", "ocean wheel"),
    ("my bank PIN is 8812", "8812"),
    ("PIN 8812", "8812"),
    ("the security code on the back is 991", "991"),
    ("my 2FA code is 552 019", "552 019"),
    ("backup codes: 4821-9921, 1123-8842", "1123-8842"),
    ("totp secret JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP"),
    ("mein Kennwort lautet Winter#22", "Winter#22"),
    ("das WLAN-Passwort ist gartenzwerg77", "gartenzwerg77"),
    ("la clave del wifi es mariposa99", "mariposa99"),
    ("mi contraseña: Luna_llena7", "Luna_llena7"),
    ("我的邮箱密码是 hai2024!lan", "hai2024!lan"),
    ("支付密码：668899", "668899"),
    ("验证码 402913 别告诉别人", "402913"),
    ("口令是芝麻开花", "芝麻开花"),
    ("api_key = 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("export GITHUB_TOKEN=ghp_" + "a1B2" * 9, "ghp_" + "a1B2" * 9),
    ("use AKIAIOSFODNN7EXAMPLE for s3", "AKIAIOSFODNN7EXAMPLE"),
    ("key sk-proj-Ab12Cd34Ef56Gh78Ij90", "sk-proj-Ab12Cd34Ef56Gh78Ij90"),
    ("slack xoxb-123456789012-abcdefGHIJKL", "xoxb-123456789012-abcdefGHIJKL"),
    ("stripe sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("glpat-x1Y2z3A4b5C6d7E8f9G0", "glpat-x1Y2z3A4b5C6d7E8f9G0"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==", "dXNlcjpwYXNzd29yZDEyMw=="),
    ("mysql://root:toor4ever@db:3306/app", "toor4ever"),
    ("https://bob:Hello123@git.example/repo", "Hello123"),
    ("the token is 4f9aQ2LmZ81xTtR0wBvKc7UeYp", "4f9aQ2LmZ81xTtR0wBvKc7UeYp"),
    ("it said Zk81mQp04XvTn72LrWy5Bc9d when I logged in", "Zk81mQp04XvTn72LrWy5Bc9d"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc123\n-----END RSA PRIVATE KEY-----", "MIIEabc123"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb2 cut off", "b3Blb2"),
    ("card 4111 1111 1111 1111", "1111 1111"),
    ("my amex 378282246310005", "378282246310005"),
    ("card number 4539 1111 2222 3333 exp 01/29", "1111 2222"),
    ("银行卡号 6222021234567890123", "6222021234567890123"),
    ("IBAN GB82 WEST 1234 5698 7654 32 is mine", "1234 5698"),
    ("ES9121000418450200051332", "ES9121000418450200051332"),
    ("my account number is 50093321", "50093321"),
    ("my SSN is 536-90-4399", "536-90-4399"),
    ("身份证号11010519491231002X", "11010519491231002X"),
    ("my passport number is C01X00T47", "C01X00T47"),
    ("护照号 E12345678", "E12345678"),
    ("mi DNI es 12345678Z", "12345678Z"),
    ("driver's license number D1234567", "D1234567"),
    ("meine Steuer-ID ist 65929970489", "65929970489"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_in_nothing_that_is_written(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert "".join(secret.split()) not in "".join(redacted.split())
    assert PLACEHOLDER.search(redacted)
    assert redact(redacted) == redacted


HARMLESS = """
my password manager is Bitwarden
my password is too weak
the password is wrong
the password was changed by IT last week
my password expires every 90 days
I forgot my password
passwords are stored in Vault
my PIN pad is broken
the PIN entry at the door is on the left
our API keys live in Vault and get rotated by Ngozi
the token ring network was slow
My locker code is 4711-XK and my locker is number 17
our door code is written on the fridge
the code word is heron
my order number is 7740-118
my membership number is 88-1203-7
invoice 2025-00417 is unpaid
my flight is LH1234 on 2025-05-01
my phone number is +44 7700 900123
call 555-0199 after 18:00
ISBN 978-3-16-148410-0
the commit is 3f2a9bc
commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904 broke it
id 123e4567-e89b-12d3-a456-426614174000
https://example.com/articles/2025/03/how-to-grow-tomatoes
my account is at the Sparbank
my passport expires in May 2029
my card is in the drawer
I was born on 1990-04-12
密码锁坏了
我家密码锁是指纹款的
我忘了密码
验证码收不到
the secret of my soup is cumin
my key is under the mat
key: G major
the auth service is written in Go
session 3 of the course is on Friday
I weigh 82.5 kg and I am 1.79 m tall
10.0.0.12 is our printer
version 2.13.0 of torch
The Hawaii trip budget is $10,000
my license plate is B-XY 1234
the tan boots are mine
my tan is fading
he passed with 93 points
el secreto de mi abuela es el comino
Mein Passwort-Manager ist KeePass
Supercalifragilisticexpialidocious is a long word
the room is called Donaudampfschifffahrt
""".strip().splitlines()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_the_rest_of_the_sentence_stays_word_for_word() -> None:
    text = "Remember my alarm PIN: 7740. The keypad is next to the door."
    assert redact(text) == "Remember my alarm PIN: [redacted password]. The keypad is next to the door."


def test_the_policy_of_each_class_is_kept() -> None:
    text = "my password is tiger-lamp-44 and my card is 4111 1111 1111 1111"
    allowing = {**REDACT_ALL, SecretClass.CARD_NUMBER: SecretPolicy.ALLOW}
    dropping = {**REDACT_ALL, SecretClass.PASSWORD: SecretPolicy.DROP}
    assert redact(text, allowing) == "my password is [redacted password] and my card is 4111 1111 1111 1111"
    assert redact(text, dropping) == "[withheld password]"
    assert redact("my card is 4111 1111 1111 1111", dropping) == "my card is [redacted card number]"


@pytest.mark.parametrize("said", ["{} The rest is long. {}", "{} {} My PIN is 8812."], ids=["nowhere", "at its end"])
def test_a_very_long_message_is_dropped_whole_for_a_secret_at_its_end(said: str) -> None:
    dropping = {**REDACT_ALL, SecretClass.PASSWORD: SecretPolicy.DROP}
    text = said.format("I live in Porto.", "well " * 1_000)
    kept = recordable(text, policy=dropping, characters_max=2_000)
    assert (kept == "[withheld password]") is ("8812" in text)
    assert "8812" not in kept


def test_checksums_are_checked() -> None:
    assert passes_luhn("4111 1111 1111 1111")
    assert not passes_luhn("4111 1111 1111 1112")
    assert not passes_luhn("0000 0000 0000 0000")
    assert iban_length("GB82WEST12345698765432") == 22
    assert iban_length("GB83WEST12345698765432") == 0
    assert is_chinese_id("11010519491231002X")
    assert not is_chinese_id("110105194912310021")
    assert is_brazilian_id("111.444.777-35")
    assert not is_brazilian_id("111.444.777-36")
    assert not is_brazilian_id("111.111.111-11")


def test_text_without_secrets_is_the_same_object() -> None:
    text = "I live in Leeds"
    assert redact(text) is text


@given(st.text(max_size=400))
def test_any_text_is_redacted_once_and_for_all(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_a_token_hidden_anywhere_in_prose_is_found() -> None:
    draw = random.Random(7)
    for _ in range(200):
        token = "ghp_" + "".join(draw.choices(string.ascii_letters + string.digits, k=36))
        text = f"so I put {token}{draw.choice('. , ) ;')} in the file"
        assert token not in redact(text)


def test_the_full_stop_after_a_key_stays_so_that_the_next_sentence_is_its_own() -> None:
    text = "My API key is sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v. My terrier is called Biscuit."
    assert redact(text) == "My API key is [redacted api key]. My terrier is called Biscuit."


def test_of_a_very_long_text_the_beginning_and_the_end_are_recorded_without_half_a_secret() -> None:
    key = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v"
    for offset in range(0, 60, 3):
        text = "I live in Porto. " + "x " * (490 - offset // 2) + key + " " + "y " * 5_000 + f" {key} My cat is Tom."
        kept = recordable(text, characters_max=2_000)
        assert len(kept) <= 2_100
        assert kept.startswith("I live in Porto.")
        assert kept.endswith("My cat is Tom.")
        assert "sk-proj" not in kept
        assert key[-8:] not in kept


def test_a_private_key_that_the_cut_would_halve_is_left_out_whole() -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] * 100)
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    kept = recordable("Hello. " + "a " * 300 + pem + "b " * 3_000 + pem + "Bye.", characters_max=2_000)
    assert "MIIEvQ" not in kept
    assert kept.endswith("Bye.")


def test_a_short_text_is_only_redacted() -> None:
    assert recordable("My cat is Tom.") == "My cat is Tom."
