"""Unwraps errors of task groups: a single error is raised as it is; several stay a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwrapped() -> Iterator[None]:
    """A single error of a task group, such as a bad setting, is raised without the group."""
    try:
        yield
    except BaseExceptionGroup as group_error:
        if len(group_error.exceptions) > 1:
            raise
        raise group_error.exceptions[0] from None


__all__ = ["unwrapped"]
