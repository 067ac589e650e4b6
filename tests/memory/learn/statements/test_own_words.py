"""Whatever the message, what is taken of it stands in it word for word, at its place, and is found in bounded time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.learn.statements.own_words import MESSAGE_CHARACTERS_MAX, meant_sentences, meant_text, own_sentences

SCRAPS = [
    "For example, ", "say, ", "suppose ", "I live in Rome", "My dog is Bo", ". ", "? ", ", ", ": ", "\n", "\n\n",
    "Translate this", "John wrote me this", "my own ", "asking for a friend", "haha just kidding", "'", '"', "“", "”",
    "```", "> ", "{", "}", "notes.txt", "A: ", "B: ", "    ", "return ",
    "比如", "我住在上海", "。", "，", "：", "开玩笑的", "他说",
]  # fmt: skip
messages = st.lists(st.sampled_from(SCRAPS), max_size=14).map("".join)


@given(messages)
@settings(max_examples=400, deadline=None)
def test_what_is_meant_is_part_of_what_is_ones_own_and_stands_in_the_message(message: str) -> None:
    own = own_sentences(message)
    for sentence in meant_sentences(message):
        assert message[sentence.start : sentence.end] == sentence.text
        assert any(one.start <= sentence.start and sentence.end <= one.end for one in own)


@given(messages)
@settings(max_examples=400, deadline=None)
def test_the_text_that_is_meant_keeps_every_character_at_its_place_and_holds_every_meant_sentence(message: str) -> None:
    text = meant_text(message)
    assert len(text) == len(message)
    assert all(kept in (said, "\n") for kept, said in zip(text, message, strict=True))
    assert all(text[s.start : s.end].split() == s.text.split() for s in meant_sentences(message))


def test_nothing_of_a_document_is_meant() -> None:
    document = "I live in Rome. " * (MESSAGE_CHARACTERS_MAX // 16 + 1)
    assert own_sentences(document) == []
    assert meant_text(document).strip() == ""
