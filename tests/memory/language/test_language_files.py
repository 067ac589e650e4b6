"""The files of the languages: whole, well-formed, and true to their own examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

import memory.language
from memory.language import asked_words, bare_reply, is_denied, language_of, wants_several
from memory.language.calendar_items import CalendarItem, ItemKind, entries_of
from memory.language.loader import (
    LANGUAGES,
    Calendar,
    Language,
    MalformedLanguage,
    Pleasantries,
    Words,
    calendar,
    parsed,
    pleasantries,
    words,
)
from memory.language.phrases import spellings
from memory.language.small_talk import is_pleasantry

FOLDER = Path(memory.language.__file__).parent

READERS: dict[str, Callable[[str], object]] = {  # of each section, in whichever file it stands
    "negators": is_denied,
    "several": wants_several,
    "replies": bare_reply,
    "forgetting": lambda text: tuple(sorted(asked_words(text))),  # its topic
    "phrases": is_pleasantry,
}
IN_ONE_LANGUAGE = ("negators", "several")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("section", READERS)
def test_a_section_keeps_its_own_examples(language: str, section: str) -> None:
    own = words(language)
    examples = getattr(own if hasattr(own, section) else pleasantries(language), section).examples
    expected = {text: tuple(sorted(one)) if isinstance(one, tuple) else one for text, one in examples}
    assert {text: READERS[section](text) for text in expected} == expected
    if section in IN_ONE_LANGUAGE:
        assert {language_of(text) for text in expected} == {language}


def lists_in(value: object) -> Iterator[tuple[str, ...]]:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name != "examples":
                yield from lists_in(getattr(value, name))
    elif isinstance(value, dict):
        for one in value.values():
            yield from lists_in(one)
    elif isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from lists_in(one)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_written_once_and_in_lower_case_and_each_section_that_decides_something_has_examples(
    language: str,
) -> None:
    own = (words(language), pleasantries(language))
    for phrases in (one for part in (*own, calendar(language)) for one in lists_in(part)):
        assert len(set(phrases)) == len(phrases), phrases
        assert all(phrase and phrase == phrase.lower() for phrase in phrases), phrases
    sections = [getattr(part, name) for part in own for name in part.__struct_fields__]
    deciding = [one for one in [*sections, calendar(language)] if isinstance(one, msgspec.Struct)]
    assert all(getattr(one, "examples", ()) for one in deciding)


def tokens_of(phrases: Iterable[str]) -> set[tuple[str, ...]]:
    return {tokens for phrase in phrases for tokens in spellings(phrase)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phrase_is_of_one_kind_and_not_both_meant_and_unmeant(language: Language) -> None:
    negators = words(language).negators
    assert not tokens_of(negators.words) & tokens_of(negators.unmeant)
    kinds: dict[tuple[str, ...], set[CalendarItem]] = {}
    for phrase, item in entries_of(calendar(language)):
        for tokens in spellings(phrase):
            kinds.setdefault(tokens, set()).add(item if item.kind is not ItemKind.MARK else CalendarItem(ItemKind.MARK))
    assert {tokens: found for tokens, found in kinds.items() if len(found) > 1} == {}
    assert not tokens_of(calendar(language).unmeant) & set(kinds)


def test_no_folder_is_left_unread() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/*.toml")} == set(LANGUAGES)
    files = {"words.toml", "calendar.toml", "pleasantries.toml"}
    assert all({path.name for path in (FOLDER / one).iterdir()} == files for one in LANGUAGES)


@pytest.mark.parametrize(
    ("name", "shape", "old", "new", "expected"),
    [
        ("en/words.toml", Words, "[negators]", "[negators", "en/words.toml: "),
        ("en/words.toml", Words, "[negators]", "[negator]", "unknown field `negator`"),
        ("en/words.toml", Words, '["Yes!", "yes"]', '["Yes!", "maybe"]', "Invalid enum value 'maybe'"),
        ("en/calendar.toml", Calendar, '["january"], ', "", "Expected `array` of length >= 12 - at `$.months`"),
        ("de/pleasantries.toml", Pleasantries, "{bald}", "{balb}", "slots without phrases: {'balb'}, unused: {'bald'}"),
        ("de/pleasantries.toml", Pleasantries, "{bald}", "{bald", "expected '}' before end of string"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(name: str, shape: type[Words], old: str, new: str, expected: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(MalformedLanguage) as raised:
        parsed(name, text.replace(old, new, 1), shape)
    assert str(raised.value).startswith(name)
    assert expected in str(raised.value)
