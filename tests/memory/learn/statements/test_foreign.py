"""Code, logs, tables, mails and talk between others are not what the user says."""

from __future__ import annotations

import pytest
from taken_words import assert_learnt_by_all, assert_learnt_by_nobody, kept

# (the message, words in it that must not be learnt)
REFUSED = [
    # Code, logs and tables
    (
        "Interview transcript:\nInterviewer: Where do you live?\nAnna: I live in Turku.\nInterviewer: Thanks.",
        "I live in Turku",
    ),
    ("Subject: Leave\nTo: HR\n\nI will be away from May 3, I have surgery.", "I have surgery"),
    ("const bio = `I live in Oslo`;", "I live in Oslo"),
    ('echo "I live in Oslo" > me.txt', "I live in Oslo"),
    ("ERROR 2024 my disk is full", "my disk is full"),
    ("return 'I live in Rome'", "I live in Rome"),
    ('greeting = "My name is Ivo"\nwhy is it undefined?', "My name is Ivo"),
    ("console.log('I own a kiosk')", "I own a kiosk"),
    ("What does it print?\n\n    say(\n    I work in Gdansk\n    )\n", "I work in Gdansk"),
    ("~~~\nI keep 3 goats\n~~~", "I keep 3 goats"),
    ("[INFO] user said I live in Bergen", "I live in Bergen"),
    ("12:04:11 worker: my disk is full at 93 percent", "my disk is full at 93 percent"),
    ('Parse it: {"who": "Kim", "note": "I live in Busan"}', "I live in Busan"),
    ("name,city,remark\nKim,Busan,I like tea\nLeo,Graz,I have a dog", "I have a dog"),
    ("On 3 May 2024, Ann Lee wrote:\n> I live in Rome\n> and my rent is 900", "my rent is 900"),
    ("A: I live in Tartu. Where do you live?\nB: I live in Riga.\nA: Nice.", "I live in Riga"),
    ("def f():\n    # I live in Oslo\n    return 1", "I live in Oslo"),
    ("print('my name is Ada')", "my name is Ada"),
    ("<p>I live in Oslo</p>", "I live in Oslo"),
    ('String s = "I own a boat";', "I own a boat"),
    ("SELECT * FROM users WHERE note = 'I like tea'", "I like tea"),
    ("2024-05-01 10:00:00 INFO I am alive and my port is 8080", "my port is 8080"),
    ("-----Original Message-----\nI quit my job in Bern.", "I quit my job in Bern"),
]

# (the message, words in it that must be learnt)
KEPT = [
    # Beside them
    ("def is a word I use daily, I teach Python.", "I teach Python"),
    ("> 30 people work in my team, I lead it", "I lead it"),
    ("Error handling is my job, I work at SAP.", "I work at SAP"),
    ("I return to Rome in May", "I return to Rome in May"),
    ("return flight. I land in Faro on 9 May.", "I land in Faro on 9 May"),
    ("INFO: I moved to Leeds", "I moved to Leeds"),
    ("    I live in Rome.\n\n    My wife works in Ostia.", "My wife works in Ostia"),
    ("Return flight: I land in Faro on 9 May.", "I land in Faro on 9 May"),
    ("I print my photos at home and my printer is a Canon.", "my printer is a Canon"),
    ("I'm learning Python.\n```python\nx = 1\n```\nI use it at my lab in Delft.", "I use it at my lab in Delft"),
    ("    I live in Rome", "I live in Rome"),
    ("About my family:\n    - my wife is called Ines\n    - we have a parrot", "my wife is called Ines"),
    ("At 12:04 I take the bus to my office in Bergen.", "I take the bus"),
    ("I drink tea,coffee,and mate", "I drink tea,coffee,and mate"),
    ("I speak English, Thai, Lao\nI eat rice, fish, eggs", "I speak English, Thai, Lao"),
    ("Diet: I am vegan\nHome: I live in Leeds", "I live in Leeds"),
    ("My e-mail is on my own server, I run Debian.", "I run Debian"),
    ("My text editor is Helix and I use two screens.", "My text editor is Helix"),
    ("I read the letter: my pension starts in 2040.", "my pension starts in 2040"),
    ("The code I work on is in Rust, my team is in Oslo.", "my team is in Oslo"),
    ("I work on notes.txt files all day in my office in Kiel.", "my office in Kiel"),
    ("README.md is the file I edit most, I'm a technical writer.", "I'm a technical writer"),
    ("My name = Leo, my city = Bath", "My name = Leo"),
    ("I wake up at 06:30:00 sharp, my alarm is a rooster.", "my alarm is a rooster"),
]


@pytest.mark.parametrize(("message", "words"), REFUSED)
def test_code_logs_and_tables_are_learnt_by_nobody(message: str, words: str) -> None:
    assert_learnt_by_nobody(message, words)


@pytest.mark.parametrize(("message", "words"), KEPT)
def test_what_only_looks_like_code_or_stands_beside_it_is_learnt(message: str, words: str) -> None:
    assert_learnt_by_all(message, words)


PASTED = [
    "Fix this please:\n```python\nname = 'Marta'\nprint('I live in Oslo')\n```",
    "Summarise this text:\nI am a nurse in Graz. I speak Slovene.\nI play the oboe.",
    "translate to German: I live in a small house by the sea and I love my garden",
    "Proofread: 'I have been working here for ten years and I love my colleagues.'",
    "What does this mail want?\nFrom: Ann\nSubject: My flat\n\nI live in Rome and my cat is ill.",
    "<document>I am the owner of three boats. My name is Kurt.</document> how many boats?",
    "> I moved to Dublin last year\n> and my rent is 1,900\n\nwhat would you reply?",
    "Is this good English? “I have a big house and I am living there since five years.”",
    "How does this read?\n---\nMy name is Vera. I sell honey.\n---",
    "把这段翻译成英文：我叫王芳，住在成都，今年三十岁。",
    "润色：“我在银行工作了十年，想换一份工作。”",
    '{"name": "Kim", "note": "I live in Busan"}',
    "my code:\nUSER_NAME=Marta\nCITY_OF_USER=Oslo\nwhy does it fail?",
    "I want you to check this.\n" + "I live in Oslo and I like my flat very much indeed. " * 40,
]


@pytest.mark.parametrize("message", PASTED)
def test_what_was_pasted_is_not_what_the_user_says(message: str) -> None:
    assert kept(message) == []


def test_a_document_of_many_pages_teaches_nothing() -> None:
    assert kept("I live in Oslo.\n" * 2_000) == []


def test_inline_code_and_short_titles_stay_in_the_users_sentence() -> None:
    message = "To release we run `make ship`, then I tag it. My talk 'Quiet Machines' is on 5 June."
    assert kept(message) == ["To release we run `make ship`, then I tag it.", "My talk 'Quiet Machines' is on 5 June."]


def test_a_statement_beside_pasted_code_is_kept() -> None:
    assert kept("I work on the Lumen team.\n```\nprint(1)\n```\nwhat does it print?") == ["I work on the Lumen team."]
