"""A secret is taken out though talk stands before it, as a phrase or as a second one; talk with none behind stays."""

from __future__ import annotations

import time

import pytest

from memory.learn.secrets.redaction import RECORDED_CHARACTERS_MAX, redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        # more than a word of talk
        ("My PIN is one nine nine two.", "nine nine"),
        ("my pin is one one one one", "one one"),
        ("My laptop password is strong coffee garden window.", "coffee garden"),
        ("my passphrase is new river stone", "river stone"),
        ("The wifi password is purple monkey dishwasher and it is slow", "monkey dishwasher"),
        # talk first, then the secret
        ("My password is old and it's Larkspur58, sorry", "Larkspur58"),
        ("Mein Passwort ist lang und es lautet Heidekraut41", "Heidekraut41"),
        ("Our wifi password is on the door: finch31", "finch31"),
        ("My password is a simple one: Otter909!", "Otter909"),
        ("My PIN is in my notes: 7731", "7731"),
        ("My password is my cat's name and year, Tom2011.", "Tom2011"),
        ("My password is my wedding day, 14062009.", "14062009"),
        ("My password is not Dunnock63 but Siskin48", "Dunnock63"),
        ("My password is not Dunnock63 but Siskin48", "Siskin48"),
        ("My password is still Siskin48", "Siskin48"),
        # a second one
        ("The passwords are Dunnock63x and Siskin48y", "]y"),
        ("My husband's password is Robin7712 and mine is Wren8845", "Wren8845"),
        ("My PIN is 4471, my wife's is 9926.", "9926"),
        ("My password is too weak, and hers is Kestrel204", "Kestrel204"),
        ("Das Passwort ist Amsel771 und meins ist Meise332", "Meise332"),
        ("我老婆的密码是hua5521，我的是shu7788", "shu7788"),
        ("The password is Robin7712 for the mail and Wren8845 for the bank", "Wren8845"),
    ],
)
def test_a_secret_further_behind_its_word_is_taken_out(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    """
My password is too weak
my PIN is easy to remember
my password is on the fridge
My password is wrong every single time
My password is correct but the site says no
My password is safe in my head I think
My password is new since last Monday
My password is only 8 characters long
My password is weak, it is a 12-character one
My password is stored somewhere, it's in 1Password
My password is stored in the vault, write to anna85@example.org
My password is old: change it
My password is not accepted at http://localhost:8080
My PIN is one of many
My password is not on the list but in iOS17
My password is too short and mine is not the only one
My wife's password is weak and mine is stronger
my passphrase is on paper
Mein Passwort ist falsch sagt mein Browser
Mi contraseña es muy larga
My dog is Rex and mine is the best
My bus is late: Line2011 never comes
Her car is a Polo and mine is Golf2011
""".strip().splitlines(),
)
def test_talk_with_no_secret_behind_it_stays_whole(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "shape",
    [
        "my password is on the fridge, ",
        "my pin is a ",
        "password: x, mine is too ",
        "it's 1, my ",
        "use a1! ",
        "I use Sommer2020 for all ",
        "my safe opens with 1 2 3 4",
        "my password is long" + " " * 150,
        "my password is " + "aaa " * 40,
        "key 0x",
        "password: a1, " + "a1-" * 40,
        "my password is not a1",
    ],
)
def test_the_longest_text_takes_less_than_a_second(shape: str) -> None:
    text = (shape * (RECORDED_CHARACTERS_MAX // len(shape) + 1))[:RECORDED_CHARACTERS_MAX]
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 1
