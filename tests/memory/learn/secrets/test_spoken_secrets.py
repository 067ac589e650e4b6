"""Secrets as people tell them, in whatever words; and talk about secrets, which tells none."""

from __future__ import annotations

import pytest

from memory.learn.secrets.redaction import redact

TOLD = [
    # changed to it
    ("I changed my password to Sommer2024", "Sommer2024"),
    ("my password was changed to Tiger99!", "Tiger99"),
    ("we have just reset the wifi password for the guests to OakTree9, write it down", "OakTree9"),
    ("I set my PIN to 9921 yesterday", "9921"),
    ("the router's password has been changed to swordfish.", "swordfish"),
    ("我的密码改成了 hunter2", "hunter2"),
    ("我把邮箱密码换成了小老虎88", "小老虎88"),
    ("the wifi password? it's still OakTree9", "OakTree9"),
    ("my old PIN, it is still 4471", "4471"),
    ("密码还是 tiger2020", "tiger2020"),
    # quoted
    ('The password for the router is "correct horse battery staple"', "horse battery staple"),
    ("my password is 'my dog ate it 99'", "dog ate it"),
    ("the wifi password is “drei kleine Enten”", "kleine Enten"),
    ('password="foo bar 99"', "bar 99"),
    ("db_password: 'blue moon 7'", "moon 7"),
    # the value first
    ("hunter2 is my password", "hunter2"),
    ("By the way, Tiger99! is the password for the printer", "Tiger99"),
    ("4711 is the PIN of my bank card", "4711"),
    ("Use hunter2 as my password", "hunter2"),
    ("My password, hunter2, is old", "hunter2"),
    ("That's Kuckuck77, our wifi password.", "Kuckuck77"),
    # used for everything, or opening something
    ("I've used Winter1999! for most of my accounts", "Winter1999"),
    ("Ich nutze Herbst2017 für alle meine Konten", "Herbst2017"),
    ("Uso Verano2018! para todas mis cuentas", "Verano2018"),
    ("The cash box opens with 9-1-7", "9-1-7"),
    ("my phone is unlocked with the code 250863, by the way", "250863"),
    ("Mein Handy geht auf mit 8855.", "8855"),
    ("My bike lock combination is 7-3-0-1", "7-3-0-1"),
    ("the combination for our suitcase is 335", "335"),
    ("The wifi key is 77120934511", "77120934511"),
    ("Unser WLAN-Schlüssel lautet Dachboden5", "Dachboden5"),
    # with its login
    ("user anna, pw Kuchen99x", "Kuchen99x"),
    ("My login is anna / hunter2", "hunter2"),
    ("credentials: admin/admin", "/admin"),
    ("my login for the shop is anna@example.org : Kuchen!9", "Kuchen!9"),
    # codes
    ("My alarm code is 9921", "9921"),
    ("alarm code 9921", "9921"),
    ("the code for the gate is 4471", "4471"),
    ("The gate code is #4471", "4471"),
    ("my voicemail code: 0042", "0042"),
    ("My PIN is four seven one one", "seven"),
    ("my pin is double seven, three nine", "nine"),
    ("meine PIN ist vier sieben eins eins", "sieben"),
    # Chinese
    ("我的密码是小猫咪123", "小猫咪123"),
    ("我的密码是小猫咪", "小猫咪"),
    ("银行卡密码：八八六六四四", "八八六六四四"),
    ("支付宝密码是abc123", "abc123"),
    ("我的密码是我家狗的名字加生日", "生日"),
    ("港澳通行证 C12345678", "C12345678"),
    ("社保卡号 123456789012", "123456789012"),
    # numbers of accounts, cards, people
    ("My IBAN is de89370400440532013000", "370400440532013000"),
    ("gb82 west 1234 5698 7654 32 belongs to me", "1234 5698"),
    ("SSN 123 45 6789", "45 6789"),
    ("my social security number is 123 45 6789", "45 6789"),
    ("My passport number is XA 1234567", "1234567"),
    ("my driver's license number is D 123 4567", "123 4567"),
    ("card 4111.1111.1111.1111", "1111.1111"),
    ("my visa is ４１１１１１１１１１１１１１１１", "１１１１１１"),
    ("o meu CPF: 111.444.777-35", "444.777"),
    ("My Aadhaar number is 9876 5432 1098", "5432 1098"),
    # keys
    ("the private key is 0x9c22ff5f21f0b81b113e63f7db6da94fedef11b2119b4088b89664fb9a3cb658", "9c22ff5f"),
    ("my api key is abcdefghijklmnop", "abcdefghijklmnop"),
    ("aws secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
    ("my key: 5f4dcc3b5aa765d61d8327deb882cf99", "5f4dcc3b"),
    ("the signing secret for staging is 5f4dcc3b5aa765d61d8327deb882cf99", "5f4dcc3b"),
    ("api_key=abcdefabcdefabcdef", "abcdefabcdef"),
    ("clientSecret: 8Q2abcdef", "8Q2abcdef"),
    ("GITLAB_AUTH=a7b8c9d0", "a7b8c9d0"),
]


@pytest.mark.parametrize(("text", "secret"), TOLD)
def test_a_secret_is_taken_out_whatever_words_announce_it(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert "[redacted " in redacted
    assert redact(redacted) == redacted


TALK = """
I keep forgetting my password
My password manager is Bitwarden
Bitwarden is my password manager
My password is running out
I changed my password to something stronger
I changed my password to protect my account from Ann
I reset the wifi password to make it longer
That is my password
Losing keys is my password problem
my pin collection is huge
my login is broken / slow
I log in at the office and my login is still pending
My alarm code is easy to forget
the dress code is smart casual
the code for the project is in Rust
my area code is 0161
my post code is 90210
My locker code is 4711-XK
My author: Tolkien99
I use 1Password for all my accounts
I use Office365 for all my accounts
I use anna1985@example.org for all my accounts
I use Notepad for all sites
I use Django4.21 for all my sites
My phone unlocks with my face
My safe opens with 2 keys
My garage opens with 150 other garages at once
The shop opens with 500 guests
My favourite combination is red and blue
It's 2019, my password was leaked then
It's 1975, my birth year
My wifi key is lost
My part is 529.982.247-26
the hash of the build is 0x9c22
Our secretary: Anna2
authentication: OAuth2
the tokenizer: cl100k_base
max_tokens: 4096
the site says my password is "too weak"
our key account is Nordwind 2024
the piano piece is in the key of 5 flats
my api key is unfortunately expired
my passport is in the drawer since 2019
my passport was issued 12 years ago in 2012
call me on 020 7946 0958
my number is 079 123 45 67
My order 1234.5678.9012.3456 is late
the train de89 leaves at 12
src/components/Button/PrimaryButton/index.tsx is the file
密码是什么
我的密码是错的
密码不对
我的密码是随机生成的
我忘了银行卡密码
密码太短了
""".strip().splitlines()


@pytest.mark.parametrize("text", TALK)
def test_talk_about_secrets_stays_whole(text: str) -> None:
    assert redact(text) == text


def test_the_rest_of_the_sentence_stays_when_a_quoted_password_goes() -> None:
    text = 'The password for the router is "correct horse battery staple", and the router stands in the hall.'
    assert redact(text) == ('The password for the router is "[redacted password]", and the router stands in the hall.')
