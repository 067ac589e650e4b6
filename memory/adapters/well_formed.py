"""Text that every wire can carry: UTF-8 has no lone surrogates, but some clients send them, as JSON escapes."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The same text; each lone surrogate becomes one replacement character, so that no text grows longer."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
