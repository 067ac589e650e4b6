"""The packaged tokenizer, with characters of our own in the places that its vocabulary left unused.

MiniLM's vocabulary knows 244 Chinese characters, so that most of a Chinese sentence was unknown to it. It has 994
places that stand for nothing: the commonest other characters of the training texts take these, with embeddings that
were trained for them. Training and production patch the vocabulary by this one function. Pure.
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

    Raises `KeyError` where the vocabulary has no such entry, `ValueError` where it is no JSON.
    """
    described: dict[str, Any] = json.loads(tokenizer)
    vocabulary: dict[str, int] = described["model"]["vocab"]
    ids: list[int] = []
    for number, character in enumerate(characters):
        ids.append(vocabulary.pop(place(number)))
        vocabulary[character] = ids[-1]
    return json.dumps(described, ensure_ascii=False), ids
