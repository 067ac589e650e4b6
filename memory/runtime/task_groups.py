"""What comes out of a group of tasks. It hides no error: different ones at once stay a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped() -> Iterator[None]:
    """A single error out of a group of tasks stays what it is: a bad setting, say.

    One that a task raised, and then whoever awaited that task, is a single one.
    """
    try:
        yield
    except BaseExceptionGroup as group_error:
        first, *others = group_error.exceptions
        if any(other is not first for other in others):
            raise
        raise first from None


__all__ = ["unwrapped"]
