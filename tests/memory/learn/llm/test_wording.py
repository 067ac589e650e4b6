"""What a model's wording may say beyond the words that it stands on: nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory.learn.llm.wording import objection

SAID_AT = datetime(2025, 3, 4, 9, tzinfo=UTC).timestamp()  # a Tuesday
NO_MORE = "Rex, my dog, came along to Rome with my sister Ana on 15 May, all 7 of us"


def why(wording: str, quote: str, *around: str) -> str:
    return objection(wording, quote, around=around, said_at=SAID_AT)


@pytest.mark.parametrize(
    ("wording", "quote"),
    [
        ("I have a black cat.", "I've got a black cat"),
        ("I prefer tea to coffee.", "I'd rather have tea than coffee"),
        ("I fly to Oslo on 2025-03-14.", "I fly to Oslo on 14 March"),
        ("I fly to Oslo on 2025-03-05.", "I fly to Oslo tomorrow"),
        ("I start at the Corvo bakery on 2025-03-10.", "next Monday I start at the Corvo bakery"),
        ("I move house in 2025-08.", "I move house in August"),
        ("I may move to Bonn.", "I might move to Bonn"),
        ("My brother Levi can't eat nuts.", "my brother Levi can't eat nuts"),
        ("我对花生过敏", "我对花生过敏"),
        ("我2025-03-14去成都", "我3月14日去成都"),
        ("Vivo en Lima.", "vivo en Lima"),
        ("Ich wohne in Köln.", "ich wohne in Köln"),
    ],
)
def test_the_same_in_other_words_with_its_dates_pinned_may_stand(wording: str, quote: str) -> None:
    assert why(wording, quote) == ""


@pytest.mark.parametrize(
    ("wording", "quote"),
    [
        ("My sister Ana likes fish.", "she likes fish"),
        ("I fed Rex.", "I fed him"),
        ("I go to Rome in May.", "I go there in May"),
    ],
)
def test_a_word_that_points_back_may_be_replaced_by_what_was_said_before(wording: str, quote: str) -> None:
    assert why(wording, quote, NO_MORE) == ""


@pytest.mark.parametrize(
    ("wording", "quote", "reason"),
    [
        ("I work at Siemens in Bonn.", "I work in Bonn", "names something that was not said"),
        ("I pay 900 for the flat.", "I pay for the flat", "a number"),
        ("I have two flats.", "I have flats", "a number"),
        ("我有三只猫", "我有猫", "a number"),
        ("I fly to Oslo on 2025-03-15.", "I fly to Oslo on 14 March", "a date"),
        ("I fly to Oslo on 2025-03-07.", "I fly to Oslo tomorrow", "a date"),
        ("I fly to Oslo on Friday.", "I fly to Oslo", "a day"),
        ("I fly to Oslo in June.", "I fly to Oslo", "a month"),
        ("I live in Rome.", "I live by the sea", "does not speak of"),
    ],
)
def test_no_name_number_or_day_comes_from_nowhere_or_from_beside_it(wording: str, quote: str, reason: str) -> None:
    assert reason in why(wording, quote, NO_MORE)


@pytest.mark.parametrize(
    ("wording", "quote"),
    [
        ("I have an appointment.", "I have an appointment with Dr Faye"),
        ("I take lisinopril.", "I take 20 mg of lisinopril"),
    ],
)
def test_no_name_or_number_gets_lost(wording: str, quote: str) -> None:
    assert "leaves out" in why(wording, quote)


@pytest.mark.parametrize(
    ("wording", "quote"),
    [
        ("I am allergic to nuts.", "I am not allergic to nuts"),
        ("I do not eat meat at home.", "I eat meat at home"),
        ("我对花生不过敏", "我对花生过敏"),
        ("I like fish tacos, prawns and squid.", "I hate fish tacos, prawns and squid"),
    ],
)
def test_no_denial_or_dislike_is_turned_around(wording: str, quote: str) -> None:
    assert "around" in why(wording, quote)


def test_a_perhaps_does_not_become_a_fact() -> None:
    assert "certain" in why("I move to Bonn.", "I might move to Bonn")


@pytest.mark.parametrize(
    ("wording", "quote"),
    [("My sister likes fish.", "I like fish"), ("I like fish.", "my sister likes fish")],
)
def test_nothing_moves_from_one_person_to_another(wording: str, quote: str) -> None:
    assert "another person" in why(wording, quote, NO_MORE)


@pytest.mark.parametrize("wording", ["User has a cat.", "The user's cat is black.", "Der Nutzer hat eine Katze."])
def test_it_speaks_in_the_first_person_as_all_memories_do(wording: str) -> None:
    assert "first person" in why(wording, "I have a black cat")


@pytest.mark.parametrize(
    "wording", ["", "  ", "I have a cat.\nI have a dog.", f"I have a cat {'and a cat ' * 50}", "我有一只猫"]
)
def test_it_is_one_sentence_in_the_language_of_its_quote(wording: str) -> None:
    assert "must be" in why(wording, "I have a cat")
