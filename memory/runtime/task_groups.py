"""What comes out of a group of tasks. It hides no error: several at once stay a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped() -> Iterator[None]:
    """A single error out of a group of tasks stays what it is: a bad setting, say."""
    try:
        yield
    except BaseExceptionGroup as group_error:
        if len(group_error.exceptions) > 1:
            raise
        raise group_error.exceptions[0] from None


__all__ = ["unwrapped"]
