"""Makes text valid UTF-8, which has no lone surrogates; some clients send them as JSON escapes."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The same text with each lone surrogate replaced by one character, so that its length does not grow."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
