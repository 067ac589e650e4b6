"""A secret that a label announces is taken out in whatever words it is told; talk about secrets stays whole.

The words that announce a secret are data (memory/secrets/labels), and each file holds the examples that are its tests.
However a text is written, finders see it plainly, and each place leads back to the characters that it stands for.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets.normalised import normalised
from memory.secrets.plain_text import plain_text
from memory.secrets.redaction import redact
from memory.secrets.secret_classes import SecretClass
from memory.secrets.vocabulary import LANGUAGES, LabelMatches, ValueKind, languages, vocabulary


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


ODD = st.sampled_from(
    ["\u00a0", "  ", "\u200b", "\\u0041", "\\u200d", "**", "&nbsp;", "–", "１", "“", "\\n", '"', "\\", "a", "4"]
)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("my\u00a0PIN\u2009is\t4471", "my PIN is 4471"),
        ("pass\u00adword\u200b: x", "password: x"),
        ("my   PIN", "my PIN"),
        ("  indented:\n    too", "  indented:\n    too"),
        (r'{"a": "my \u0050IN\u00a0is\n4471"}', '{"a": "my PIN is\n4471"}'),
        (r"\\\"\\\\u0041", '"A'),
        (r"C:\new", r"C:\new"),
        ("**PIN**: ***4471*** ******", "PIN: 4471 ******"),
        ("“a” ‘b’ «c»", '"a" \'b\' "c"'),
        ("4111–1111—1111 a—b a–b x – y", "4111-1111-1111 a—b a-b x - y"),
        ("ＰＩＮ：４４７１ 𝗣𝗜𝗡 ٤٤", "PIN:4471 PIN 44"),
        ("a&nbsp;b&#x200b;c&quot; R&D; x²", 'a bc" R&D; x²'),
    ],
)
def test_what_is_written_otherwise_is_folded(written: str, plain: str) -> None:
    assert normalised(written).text == plain


@given(st.lists(st.one_of(ODD, st.text(max_size=3)), max_size=20))
def test_each_place_leads_back_to_its_own_characters(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = normalised(text)
    position = 0
    for at in range(len(found.text)):
        start, end = found.original(at, at + 1)
        assert position <= start < end <= len(text)
        position = end
    if found.text:
        assert found.original(0, len(found.text))[1] == position


def test_a_plain_text_is_the_same_object() -> None:
    text = "I live in Leeds, and my password is too weak"
    assert normalised(text).text is text
