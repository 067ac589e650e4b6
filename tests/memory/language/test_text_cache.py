"""What is made of short texts is kept, what is made of long ones is not."""

from __future__ import annotations

from memory.language.text_cache import TEXT_CHARACTERS_MAX, cached_by_text


def test_a_short_text_is_read_once_and_a_long_one_is_never_kept() -> None:
    asked: list[str] = []

    @cached_by_text
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "a" * TEXT_CHARACTERS_MAX, "b" * (TEXT_CHARACTERS_MAX + 1)
    assert [length(short), length(short), length(long), length(long)] == [500, 500, 501, 501]
    assert asked == [short, long, long]
