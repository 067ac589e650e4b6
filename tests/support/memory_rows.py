"""Small makers of memories and vectors for tests of whoever keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory.model import Change, ChangeKind, Memory, Vector
from memory.ports import MemoryStore

DIMENSION = 8


def direction(*weights: float) -> Vector:
    """A unit vector with these first components."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(weights)] = weights
    return vector / np.linalg.norm(vector)


def memory(
    memory_id: str, content: str = "", *, user_id: str = "ann", at: float = 1_700_000_000.0, **rest: object
) -> Memory:
    """Said and stored at that time."""
    values = {"content": content or f"content of {memory_id}", "created_at": at, "updated_at": at, "said_at": at} | rest
    return Memory(id=memory_id, user_id=user_id, **values)  # type: ignore[arg-type]


async def put(store: MemoryStore, *memories: Memory, vectors: Sequence[Vector] = ()) -> None:
    for user_id in {m.user_id for m in memories}:
        own = [i for i, m in enumerate(memories) if m.user_id == user_id]
        matrix = np.stack([vectors[i] if vectors else direction(1.0) for i in own])
        await store.apply(user_id, [Change(ChangeKind.CREATE, memories[i]) for i in own], matrix)
