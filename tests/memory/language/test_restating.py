"""A text says a forgotten statement rather too often than too seldom, but not by chance."""

from __future__ import annotations

import pytest

from memory.language.restating import has_code_of, says_any, wording_of


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("My locker code is 9876.", "So, my locker code is 9876, isn't it?"),
        ("My locker code is 9876.", "9876 still does not open it"),
        ("The user's locker code is B-204", "b-204 again"),
        ("I live in Leeds.", "Leeds is where I live now"),
        ("My brother Nils likes green tea.", "Nils, my brother, loves tea"),
        ("Meine Katze heißt Mia.", "Mia ist meine Katze"),
        ("Mi hermana vive en Sevilla.", "¿Conoces a mi hermana de Sevilla?"),
        ("我住在上海", "我现在住上海"),
        ("My sister owes me money", "that money my sister owes"),
        ("Leeds", "leeds."),
    ],
)
def test_it_is_said_in_the_same_or_similar_words(statement: str, text: str) -> None:
    assert says_any(text, [wording_of("Something else entirely"), wording_of(statement)])


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("I live in Leeds.", "I live in York."),
        ("My boat is old.", "My boat is t2."),
        ("My locker number is 42.", "Room 42 is cold"),
        ("I moved to Bristol in 2024.", "What happened in 2024?"),
        ("Leeds", "Leeds won again"),
        ("Hi", "History is fun"),
        ("Exactly.", "Exactly, and the boat?"),
        ("我住在上海", "我喜欢北京"),
        ("My sister owes me money", "My sister is a doctor"),
    ],
)
def test_something_else_is_not_taken_for_it(statement: str, text: str) -> None:
    assert not says_any(text, [wording_of(statement)])


def test_codes_of_a_request_are_found_wherever_they_stand() -> None:
    assert has_code_of("Forget my locker code 9876", "Is 9876 right?")
    assert not has_code_of("Forget my locker code", "Is 9876 right?")
    assert not has_code_of("Forget what I said in 2024", "In 2024 we moved")
