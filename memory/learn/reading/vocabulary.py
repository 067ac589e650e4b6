"""The packaged tokenizer, with additional characters in unused entries of its vocabulary.

MiniLM's vocabulary has 244 Chinese characters, so that most of a Chinese sentence was unknown to it. It has 994 unused
entries: the commonest other characters of the training texts take these, with embeddings trained for them. Training and
production use the same function. Pure.
"""

from __future__ import annotations

import json
from typing import Any

PLACES_MAX = 990  # of 994


def place(number: int) -> str:
    """The name of an unused entry of the vocabulary."""
    return f"[unused{number}]"


def with_characters(tokenizer: str, characters: str) -> tuple[str, list[int]]:
    """The tokenizer's JSON with each character in place of an unused entry, and their token ids, in order.

    Raises `KeyError` if the vocabulary has no such entry, `ValueError` for invalid JSON.
    """
    described: dict[str, Any] = json.loads(tokenizer)
    vocabulary: dict[str, int] = described["model"]["vocab"]
    ids: list[int] = []
    for number, character in enumerate(characters):
        ids.append(vocabulary.pop(place(number)))
        vocabulary[character] = ids[-1]
    return json.dumps(described, ensure_ascii=False), ids
