"""The words that announce a secret are data, and each file's own examples hold; what is lexical is nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import memory.secrets
from memory.secrets.plain_text import plain_text
from memory.secrets.redaction import redact
from memory.secrets.secret_classes import SecretClass
from memory.secrets.vocabulary import LANGUAGES, LabelMatches, ValueKind, languages, vocabulary

PATTERN_CHARACTERS_MAX = 900  # what is known stands in the libraries and in the data
PATTERN_CALLS = {"compile", "match", "fullmatch", "search", "finditer", "findall", "sub", "split"}
REDACTED = [example for language in languages() for example in language.redacted]
KEPT = [example for language in languages() for example in language.kept]


@pytest.mark.parametrize(("text", "expected"), REDACTED)
def test_an_example_of_a_language_is_redacted_as_its_file_says(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize("text", KEPT)
def test_a_look_alike_of_a_language_stays_word_for_word(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_language_has_examples_of_both_sorts(name: str) -> None:
    language = languages()[LANGUAGES.index(name)]
    assert len(language.redacted) >= 10
    assert len(language.kept) >= 10


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_label_is_found_in_a_text_of_its_own(name: str) -> None:
    language = languages()[LANGUAGES.index(name)]
    for labels in language.labels:
        for word in labels.words:
            found = vocabulary().find(plain_text(f"({word.title()}) "))
            assert any(label.start == 1 and label.end == 1 + len(word) for label in found), word


def test_no_label_is_of_two_kinds_in_one_language() -> None:
    for language in languages():
        words = [word for labels in language.labels for word in labels.words]
        assert len(words) == len(set(words))


@pytest.mark.parametrize("written", ["api key", "api-key", "api_key", "apikey", "API Key", "ApiKey"])
def test_a_label_is_known_however_its_parts_are_joined(written: str) -> None:
    (label,) = vocabulary().find(plain_text(f"{written} "))
    assert label.words.kind is ValueKind.KEY
    assert label.words.secret_class is SecretClass.API_KEY


@pytest.mark.parametrize("text", ["tokenizer", "secretary", "spinning", "pineapple", "tank", "author", "opinion"])
def test_a_label_within_a_word_is_none(text: str) -> None:
    assert vocabulary().find(plain_text(text)) == []


def test_labels_are_asked_for_by_class_and_place() -> None:
    plain = plain_text("my card, and then my passport")
    labels = LabelMatches(vocabulary().find(plain), vocabulary())
    assert labels.has(SecretClass.CARD_NUMBER, 0, 8)
    assert not labels.has(SecretClass.CARD_NUMBER, 8, len(plain.text))
    assert labels.has(SecretClass.NATIONAL_ID, 8, len(plain.text))
    assert not labels.has(SecretClass.BANK_ACCOUNT, 0, len(plain.text))


def names_pattern(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id in ("_SIGN", "_DASH", "_GAP")


def test_patterns_in_the_code_are_few() -> None:
    """Counts the literals that are passed to `re`, and those that are put together from a name."""
    count = 0
    for file in Path(memory.secrets.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and bool(node.args)
            if is_call and node.func.attr in PATTERN_CALLS and getattr(node.func.value, "id", "") == "re":
                parts = [part for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
                count += sum(len(part.value) for part in parts if isinstance(part.value, str))
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and names_pattern(node.targets[0]):
                count += len(str(node.value.value))
    assert 0 < count < PATTERN_CHARACTERS_MAX
