"""Unwraps errors of task groups: a single error is raised as it is; several different ones stay a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped() -> Iterator[None]:
    """A single error of a task group, such as a bad setting, is raised without the group.

    An error that a task raised, and that was raised again where the task was awaited, counts once.
    """
    try:
        yield
    except BaseExceptionGroup as group_error:
        first, *others = group_error.exceptions
        if any(other is not first for other in others):
            raise
        raise first from None


__all__ = ["unwrapped"]
