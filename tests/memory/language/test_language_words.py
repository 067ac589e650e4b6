"""What the functions over the word lists promise, beyond the examples of the files; whole words, and restatements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language import (
    abbreviations,
    asked_words,
    bare_reply,
    content_words,
    function_words,
    is_denied,
    is_limited,
    language_of,
    month_names,
    names_everything,
    names_previous,
)
from memory.language.phrases import PhraseTable, tokenize
from memory.language.restating import has_code_of, says_any, wording_of
from memory.language.text_cache import TEXT_CHARACTERS_MAX, cached_by_text
from memory.language.word_boundaries import whole_word_positions


def test_abbreviations_have_lost_their_last_full_stop() -> None:
    assert {"dr", "z.b", "e.g", "p.ej"} <= abbreviations()


def test_month_names_are_the_german_ones_that_follow_an_ordinal() -> None:
    assert "14. Juni".lower().removeprefix("14. ").startswith(month_names())
    assert "may" not in month_names()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hola", "es"), ("Ich lebe in New York", "de"), ("I live in München", "en"), ("Me llamo Tom", "es"),
        ("我的 girlfriend 叫 Amy", "zh"), ("小明 likes tea and I like coffee", "en"),
        ("今日はいい天気です", "en"), ("Привет", "en"), ("no", "en"), ("", "en"), ("123", "en"),
    ],
)  # fmt: skip
def test_language_by_script_then_by_words_and_english_when_unsure(text: str, expected: str) -> None:
    assert language_of(text) == expected


@pytest.mark.parametrize("text", ["fruehstueck", "frühstück", "fruhstuck"])
def test_umlauts_and_accents_may_be_left_out_or_written_out(text: str) -> None:
    assert PhraseTable([("frühstück", "meal")]).labels(tokenize(text).tokens) == {"meal"}


def test_an_accent_that_makes_another_word_is_not_left_out() -> None:
    table = PhraseTable([("él", "he")])
    assert table.labels(tokenize("Él vive en Lima.").tokens) == {"he"}
    assert table.labels(tokenize("El coche vive en Lima.").tokens) == set()


def test_traditional_characters_are_read_as_simplified_ones() -> None:
    assert is_denied("我沒有孩子")


def test_the_longest_phrase_counts() -> None:
    table = PhraseTable([("sister", "sibling"), ("sister-in-law", "relative")], unmeant=["sister company"])
    assert table.labels(tokenize("my sister in law").tokens) == {"relative"}
    assert table.labels(tokenize("our sister company").tokens) == set()


def test_a_phrase_does_not_reach_over_a_mark() -> None:
    assert PhraseTable([("last one", "x")]).labels(tokenize("at last, one left").tokens) == set()


def test_an_opening_no_denies_what_was_said_before_and_not_what_follows() -> None:
    assert not is_denied("No, that's wrong, I live in Leeds.")
    assert is_denied("No, I don't live in Leeds.")
    assert is_denied("No.")


def test_everything_of_something_still_names_it() -> None:
    assert names_everything("Forget everything about Berlin.")
    assert asked_words("Forget everything about Berlin.") == {"berlin"}
    assert asked_words("Forget everything.") == set()


@pytest.mark.parametrize(
    "text",
    ["Forget everything you just said.", "Forget it all", "Vergiss das alles.", "Borra todo eso.", "你说的全部忘掉"],
)
def test_all_of_what_was_just_said_is_not_everything(text: str) -> None:
    assert not names_everything(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Berlin-Mitte", {"liv", "berlin", "mitt"}),
        ("Plan A costs $50.20", {"a", "plan", "cost", "$50.20"}),
        ("Anna's cats don't eat 7.3.1", {"anna", "cat", "eat", "7.3.1"}),
        ("My son may die", {"son", "may", "die"}),
        ("Meine Tochter hat die Grippe", {"tocht", "gripp"}),
        ("我住在上海，北京", {"住", "上海", "北京"}),
        ("O'Brien’s car", {"o'brien", "car"}),
        ("", set()),
    ],
)
def test_content_words_are_what_carries_the_matter(text: str, expected: set[str]) -> None:
    assert content_words(text) == expected


def test_function_words_are_those_of_all_languages_but_not_names_of_things() -> None:
    assert {"the", "und", "también", "tambien", "的"} <= function_words()
    assert not {"may", "die", "son", "hat", "dos"} & function_words()


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert language_of(text) in ("en", "de", "es", "zh")
    assert bare_reply(text) in ("yes", "no", "")
    assert asked_words(text) is not None
    assert content_words(text) == content_words(text)
    for asks in (is_denied, is_limited, names_everything, names_previous):
        asks(text)


@pytest.mark.parametrize(
    ("words", "text", "places"),
    [
        ("11", "on 1 May at 11, room 11", [12, 21]), ("1", "on 1 May at 11", [3]), ("nan", "bananas", []),
        ("kg", "12kg", [2]), ("周一", "预约在周一上午", [3]), ("Öl", "Möl, Öl", [5]), ("", "anything", []),
    ],
)  # fmt: skip
def test_a_word_is_found_whole(words: str, text: str, places: list[int]) -> None:
    assert whole_word_positions(words, text) == places


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


def test_a_short_text_is_read_once_and_a_long_one_is_never_kept() -> None:
    asked: list[str] = []

    @cached_by_text
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "a" * TEXT_CHARACTERS_MAX, "b" * (TEXT_CHARACTERS_MAX + 1)
    assert [length(short), length(short), length(long), length(long)] == [500, 500, 501, 501]
    assert asked == [short, long, long]
