"""A profile: a few lines about a user, or about a user's project, that stay the same until they change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One line of a prompt. `memory_id`: the memory that it repeats, or "" for a line that the user pinned.

    `is_wish`: it says how the user wants to be answered.
    """

    text: str
    tokens: int
    memory_id: str = ""
    is_wish: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """`pinned` lines are the user's own; `lines` come from memories.

    An empty `project_id`: the user's own profile. `version` grows by one with each change of the lines; 0 if nothing is
    stored. `is_enabled`: whether it may be part of a prompt. `updated_at`: Unix seconds.
    """

    user_id: str
    project_id: str = ""
    version: int = 0
    pinned: tuple[ProfileLine, ...] = ()
    lines: tuple[ProfileLine, ...] = ()
    is_enabled: bool = True
    updated_at: float = 0.0


@dataclass(frozen=True, slots=True)
class ProfileText:
    """A profile as it stands in a prompt: its text, the ids of the memories in it, and its tokens.

    `versions`: of the user's and of the project's profile; 0 if it has none.
    """

    text: str
    memory_ids: tuple[str, ...]
    tokens: int
    versions: tuple[int, int]
