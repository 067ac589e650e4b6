"""Secrets that no word announces are known by what is talked of; without such talk, words and numbers stay whole."""

from __future__ import annotations

import pytest

from memory.learn.secrets.redaction import redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Make a sign for the guests: the wifi is Heron and the thing to type is porridge-and-honey-42", "porridge"),
        ("I can't log in to the library, I type Kestrel_Lane77 every time", "Kestrel_Lane77"),
        ("It's quince, underscore, capital J: quince_Jelly09", "quince_Jelly09"),
        ("the portal will not unlock with blaubeere2019", "blaubeere2019"),
        ("Ich kann mich nicht anmelden, obwohl apfelkuchen1987 stimmt", "apfelkuchen1987"),
        ("我每次都用xiaohei2016登录，今天登不上", "xiaohei2016"),
        ("大小写没错，就是Maomao#31", "Maomao#31"),
        ("The alarm beeps when you open the door, type in 90210 and the hash key", "90210"),
        ("For the key box press 4471.", "4471"),
        ("side gate is 6631, dinner at six", "6631"),
        ("for the flat it's 4420 and then the hash key", "4420"),
        ("单元楼按 7733 再按井号", "7733"),
        ("my phone says 402217, never share it", "402217"),
        ("which one is first? QT7X-81LM-PP2K or K9RB-0ZZ4-MM1A", "QT7X-81LM-PP2K"),
        ("it always wants Moorhuhn$Tee5 from me", "Moorhuhn$Tee5"),
        ("he types harbour-Lantern-58 and waits", "harbour-Lantern-58"),
        ("on paper: harbor lantern puzzle crystal monkey blanket rocket window silver turtle garlic velvet", "garlic"),
        ("for the fax: 4485 1122 3344 5566, 08/28, the three on the back 771", "771"),
        ("the form wants AB 11 22 33 C from me", "22 33"),
        ("到大门口输入 5580 就能进来", "5580"),
        ("Book it with my card please, exp 11/27, code 905", "905"),
        ("Book it with my card please, exp 11/27, code 905", "11/27"),
        ("my pin, if I recall, 4 4 7 1", "4 4 7 1"),
        ("取款密码是 8 0 1 6 2 2", "8 0 1 6 2 2"),
        (
            "for my wallet: orbit maple canyon ribbon silver pencil tunnel garden mirror hockey fabric olive",
            "orbit maple",
        ),
    ],
)
def test_a_secret_is_taken_out_by_what_is_talked_of(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "My bike is a Kestrel_Lane77 from the outlet",
        "I log in to the forum as anna@example.org",
        "I always log in with my phone, a Pixel 8",
        "My wifi router is a FritzBox 7590 in the hall",
        "Our login page is written in bootstrap5 and lives in login_page.html",
        "I forgot my password on 2024-11-03",
        "Press 3 for service, I waited 200 minutes",
        "I enter 500 km a month in my log book",
        "The door to flat 214 is green",
        "I typed 5000 words of my novel behind a locked door last year",
        "My card game has 312 cards",
        "My vacuum is a VX 9000-4471-2208-6650",
        "The door is 2100 mm high",
        "My parts are numbered KX-4417-B and KX-4418-B",
        "We are AT&T customers since 2019",
        "I ran 400 km and paid 300$ in 2023",
        "The ticket is #48121, see issue#48121",
        "I got a visa that is valid until May",
        "My wallet is brown and I keep it in my coat with the keys and the old photos of my family",
        "I need these: pencil, ruler, compass, glue, paper, paint, brush, folder, eraser, scissors, tape, stapler",
        "我住在5580号，大门是红色的",
        "我登上了海拔5545米的山",
    ],
)
def test_ordinary_names_and_numbers_stay(text: str) -> None:
    assert redact(text) == text
