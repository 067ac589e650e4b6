"""A secret that a label announces is taken out in whatever words it is told; talk about secrets stays whole."""

from __future__ import annotations

import pytest

from memory.secrets.plain_text import plain_text
from memory.secrets.redaction import redact
from memory.secrets.secret_classes import SecretClass
from memory.secrets.vocabulary import LANGUAGES, LabelMatches, ValueKind, languages, vocabulary

TOLD = [
    # behind a sign
    ("Password: Sunny!Day7", "Sunny!Day7"),
    ("**Password:** Tulip99", "Tulip99"),
    ("- User: anna\n- Password: Br1ghtMoon", "Br1ghtMoon"),
    ("Password:\nhunter2!", "hunter2!"),
    ('{"password": "Wolke77!", "user": "anna"}', "Wolke77!"),
    ("'pass' => 'Wolke77!'", "Wolke77!"),
    ("<password>Wolke77!</password>", "Wolke77!"),
    ("user=bob;pwd=Zebra#77;db=shop", "Zebra#77"),
    ("Password for the router - Wolke77!", "Wolke77!"),
    ("alarm PIN: 5583", "5583"),
    ("voicemail code: 0042", "0042"),
    ("export SECRET_KEY_BASE=3f2a9bc81d7e6f5a4b3c2d1e", "3f2a9bc81d7e6f5a4b3c2d1e"),
    ("x-api-key: 8f3kd92jx81ls0q2", "8f3kd92jx81ls0q2"),
    ("Authorization: Bearer 8f3kd92jx81ls0q2aa", "8f3kd92jx81ls0q2aa"),
    # behind a word
    ("the password for the NAS in the basement is Kestrel_204", "Kestrel_204"),
    ("pls remember my netflix password its Giraffe-81", "Giraffe-81"),
    ("my password's hunter42", "hunter42"),
    ("the wifi password is “drei kleine Enten”", "kleine Enten"),
    ("the password is: Otter!1", "Otter!1"),
    ("my wifi password is marble candle teapot window and it is slow", "candle teapot"),
    ("The answer to my security question is Mrs Dalloway.", "Dalloway"),
    ("my bike lock combo is 0-7-3-1", "0-7-3-1"),
    ("The cash box opens with 9-1-7-2", "9-1-7-2"),
    ("my pin is double seven, three nine", "nine"),
    # bare
    ("PUK 12345678", "12345678"),
    ("user anna, pw Kuchen99x", "Kuchen99x"),
    # several
    ("Passwords are Otter!1 and Badger!2", "Badger!2"),
    ("My husband's password is Robin7712 and mine is Wren8845", "Wren8845"),
    # further behind
    ("Our wifi password is on the door: finch31", "finch31"),
    ("My password is not Dunnock63 but Siskin48", "Siskin48"),
    ("the wifi password? it's still OakTree9", "OakTree9"),
    # before
    ("By the way, Tiger99! is the password for the printer", "Tiger99"),
    ("4711 is the PIN of my bank card", "4711"),
    ("Use 771204 as your verification code", "771204"),
    ("That's Kuckuck77, our wifi password.", "Kuckuck77"),
    # two languages at once
    ("mi password es Toro_2031", "Toro_2031"),
    ("我的wifi password是OakTree9", "OakTree9"),
    ("das Password is Igel77", "Igel77"),
]


@pytest.mark.parametrize(("text", "secret"), TOLD)
def test_a_secret_is_taken_out_however_it_is_told(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert "[redacted " in redacted
    assert redact(redacted) == redacted


TALK = """
my password manager is Bitwarden
my password is the same as before
My password is weak, it is a 12-character one
My password is stored somewhere, it's in 1Password
I changed my password to something stronger
my password was last changed on 12/03/2024
How do I reset my password in Windows11?
I use Office365 for all my accounts
Password requirements: 8+ characters, one digit, one symbol
**Strong passwords**: use 12+ characters and 2FA.
Passwords: Change them every 90 days
passwords are hashed with bcrypt12
const password = document.getElementById('pw1').value;
if password == confirm_password2:
$password = $_POST['password'];
PASSWORD_RESET_TIMEOUT = 259200
password: str = Field(min_length=8)
"type": "password"
<input type="password" name="pass1" placeholder="Password">
Forgot password? Click here: https://example.org/reset?id=77
It's 2019, my password was leaked then
The secret ingredient: 2 tbsp of miso
our secretary: Anna2
key: value
Key points: 1. budget 2. time
the piano piece is in the key of 5 flats
API key: get it from the dashboard
Authorization: Bearer YOUR_TOKEN
authentication: OAuth2
the hash of the build is 0x9c22
You have 3000 tokens left
my pin collection is huge
a bowling pin weighs 1500 grams
the tan boots are mine
Use code WELCOME10 at checkout
Code 404 means not found
booking code: XK4T9P
The combination of 12 and 34 is fine
Door 1204 is on the 12th floor
The garage opens with 150 other garages at once
The alarm rings at 6:30
my order number is 5583-204
login time: 10:30 / 11:30
my login is broken / slow
our key account is Nordwind 2024
The recovery phrase has 24 words
security question: what was my first pet?
my account is at the Sparbank
my passport was issued 12 years ago in 2012
Mein Passwort ist mir entfallen
Die PIN ist auf dem Zettel
el código es de 2019
la contraseña está guardada en Bitwarden
请输入6位数字密码
密码错误3次后锁定
如何重置Windows11密码？
""".strip().splitlines()


@pytest.mark.parametrize("text", TALK)
def test_talk_about_secrets_stays_whole(text: str) -> None:
    assert redact(text) == text


def test_the_rest_of_the_sentence_stays_when_a_quoted_password_goes() -> None:
    text = 'The password for the router is "correct horse battery staple", and the router stands in the hall.'
    assert redact(text) == ('The password for the router is "[redacted password]", and the router stands in the hall.')


# The words that announce a secret are data, and the examples of each file hold


@pytest.mark.parametrize(("text", "expected"), [one for language in languages() for one in language.redacted])
def test_an_example_of_a_language_is_redacted_as_its_file_says(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize("text", [one for language in languages() for one in language.kept])
def test_a_look_alike_of_a_language_stays_word_for_word(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_language_has_examples_of_both_sorts_and_each_of_its_labels_is_of_one_kind_and_found(name: str) -> None:
    language = languages()[LANGUAGES.index(name)]
    assert min(len(language.redacted), len(language.kept)) >= 10
    words = [word for labels in language.labels for word in labels.words]
    assert len(words) == len(set(words))
    for word in words:
        found = vocabulary().find(plain_text(f"({word.title()}) "))
        assert any(label.start == 1 and label.end == 1 + len(word) for label in found), word


@pytest.mark.parametrize("written", ["api key", "api-key", "api_key", "ApiKey"])
def test_a_label_is_known_however_its_parts_are_joined(written: str) -> None:
    (label,) = vocabulary().find(plain_text(f"{written} "))
    assert label.words.kind is ValueKind.KEY
    assert label.words.secret_class is SecretClass.API_KEY


@pytest.mark.parametrize("text", ["tokenizer", "secretary", "spinning", "opinion"])
def test_a_label_within_a_word_is_none(text: str) -> None:
    assert vocabulary().find(plain_text(text)) == []


def test_labels_are_asked_for_by_class_and_place() -> None:
    plain = plain_text("my card, and then my passport")
    labels = LabelMatches(vocabulary().find(plain), vocabulary())
    assert labels.has(SecretClass.CARD_NUMBER, 0, 8)
    assert not labels.has(SecretClass.CARD_NUMBER, 8, len(plain.text))
    assert labels.has(SecretClass.NATIONAL_ID, 8, len(plain.text))
    assert not labels.has(SecretClass.BANK_ACCOUNT, 0, len(plain.text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("use the pin one four seven one one, thanks", "four seven one"),
        ("use the pin 'ab cd 471', thanks", "471"),
        ("user anna, password Kuchen⑨⑨x", "Kuchen"),
        ("hunter2 is my password, and I have no other", "hunter2"),
        ("my password is lost, so use the password\nhunter2", "hunter2"),
        (f"{'a word. ' * 100}Now use the password hunter2", "hunter2"),
    ],
)
def test_a_value_that_only_its_digits_betray_is_found_wherever_they_stand(text: str, value: str) -> None:
    assert value not in redact(text)
