"""Messages are cut at sentences and lines; every unit is an exact part of its message; blocks are nobody's talk."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.learn.reading.units import BLOCKS_CHARACTERS_MAX, CHARACTERS_MAX, UNIT_CHARACTERS_MAX, units_of

MANY = "; ".join(f"Person {number} <person.{number}@example.com>" for number in range(12))
MAIL = f"From: Bob <bob@example.com>\nSent: Monday, 2 June 2025 10:00\nTo: {MANY}\nSubject: Trip\n\nI live in Bonn."


def texts(message: str, *, own: bool = True) -> list[str]:
    return [unit.text for unit in units_of(message) if unit.is_own is own]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("I moved. I like it here!  Do you?", ["I moved.", "I like it here!", "Do you?"]),
        ("我搬家了。我喜欢这里！你呢？", ["我搬家了。", "我喜欢这里！", "你呢？"]),
        ("Dr. Hall said it's fine, e.g. walking. I agree.", ["Dr. Hall said it's fine, e.g. walking.", "I agree."]),
        ("Am 14. Juni heirate ich. Schön!", ["Am 14. Juni heirate ich.", "Schön!"]),
        ("It costs 3.50 at 7.30 p.m. today", ["It costs 3.50 at 7.30 p.m. today"]),
        ("- first\n- second one\n3) third", ["first", "second one", "third"]),
        ("so yeah...i quit", ["so yeah...i quit"]),
        ("هل تتذكر اسم قطتي؟ انسَ عنواني.", ["هل تتذكر اسم قطتي؟", "انسَ عنواني."]),
        ('He said "Go." Then I left.', ['He said "Go."', "Then I left."]),
    ],
)
def test_a_message_is_cut_where_its_sentences_and_lines_end(message: str, expected: list[str]) -> None:
    assert texts(message) == expected


@pytest.mark.parametrize(
    ("message", "own"),
    [
        ("Why?\n```py\nmy_name = 'Bonn'\n```\nI use 3.11.", "I use 3.11."),
        ("Summarise:\n\n> I live in Bonn and like tea.\n\nThanks", "Thanks"),
        ("Sure.\n\nOn Tue, Mar 3, 2026 at 5:12 PM Bo Ray <bo@x.org> wrote:\nI live in Bonn.\n", "Sure."),
        ("Super.\n\nLe mar. 3 mars 2026 à 17:12, Bo Ray <bo@x.org> a écrit :\nJ'habite à Bonn.\n", "Super."),
        ("了解です。\n\n2026年3月3日(火) 17:12 Bo Ray <bo@x.org>:\nBonnに住んでいます。\n", "了解です。"),
        ("Fix it:\n\n| name | city |\n|---|---|\n| Ann | Bonn |\n", "Fix it:"),
        ("- look:\n\n  > I live in Bonn\n\n- and I moved", "and I moved"),
        ("1. code:\n\n   ```\n   I live in Bonn\n   ```\n2. and I moved", "and I moved"),
        ("- a\n  - b\n    > I live in Bonn\n\n- and I moved", "and I moved"),
        (f"Please answer this mail:\n\n{MAIL}", "Please answer this mail:"),
    ],
)
def test_blocks_that_are_nobodys_talk_are_not_the_authors_own(message: str, own: str) -> None:
    assert any("Bonn" in text for text in texts(message, own=False))
    assert not any("Bonn" in text for text in texts(message))
    assert own in texts(message)


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r", "\r\n", "\n"])
def test_a_block_stands_where_it_stands_whatever_else_ends_a_line(mark: str) -> None:
    message = f"a{mark}b{mark}c\n\n> I am allergic to nuts\n\nI am not."
    assert texts(message, own=False) == ["> I am allergic to nuts"]
    assert texts(message)[-1] == "I am not."


@pytest.mark.parametrize("lines", [4_000, 12_000])  # past what is read, and past what is looked through for blocks
def test_a_document_whose_second_half_begins_in_a_fence_is_not_turned_about(lines: int) -> None:
    message = "hello world. " * 600 + "\n```\n" + "x = 1\n" * lines + "```\nI live in Leeds.\n"
    if len(message) > BLOCKS_CHARACTERS_MAX:
        message = message[-BLOCKS_CHARACTERS_MAX:]
        message = "```\n" + message[4:]
    assert texts(message)[-1] == "I live in Leeds."
    assert not any("x = 1" in text for text in texts(message))


@pytest.mark.parametrize(
    "piece",
    [
        *("- a\n  ", "> a\n", "```\nx\n```\n", "|a|b|\n|-|-|\n", "[a]: b\n", "a\n-\n", "On 3 May A wrote:\n"),
        *("On x wrote ", "Il x ha scritto ", "Le "),
    ],
)
async def test_blocks_are_found_in_time_in_proportion(piece: str) -> None:
    message = (piece * BLOCKS_CHARACTERS_MAX)[:BLOCKS_CHARACTERS_MAX] + "\nas said:\n"
    async with asyncio.timeout(60):
        await asyncio.to_thread(units_of, message[-BLOCKS_CHARACTERS_MAX:])


@pytest.mark.parametrize("message", ["", " \n\t", "?!", "…", "👍", "\ud800"])
def test_a_message_without_a_letter_or_digit_has_no_unit(message: str) -> None:
    assert units_of(message) == []


def test_a_run_without_an_end_is_cut_at_a_comma_or_a_space() -> None:
    units = units_of("word " * 400 + "and, then " * 100)
    assert max(len(unit.text) for unit in units) <= UNIT_CHARACTERS_MAX
    assert all(not unit.text.startswith(",") for unit in units)


def test_of_a_document_the_two_ends_are_read_in_bounded_time() -> None:
    message = "".join(f"Line {n} of it all.\n" for n in range(20_000))
    units = units_of(message)
    assert sum(len(unit.text) for unit in units) <= CHARACTERS_MAX
    assert all(message[unit.start : unit.end] == unit.text for unit in units)
    assert (units[0].text, units[-1].text) == ("Line 0 of it all.", "Line 19999 of it all.")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters(blacklist_categories=()), max_size=300))
def test_every_unit_is_an_exact_part_in_order_whatever_the_text(message: str) -> None:
    units = units_of(message)
    assert all(message[unit.start : unit.end] == unit.text and unit.text for unit in units)
    assert all(first.end <= second.start for first, second in pairwise(units))
