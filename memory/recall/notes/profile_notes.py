"""A profile opens the first note of a conversation, ahead of that question's memories, and is put back with it.

So it keeps its place and its bytes for the whole conversation, whatever the API; a new version reaches new
conversations only. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from memory.model import PastNote, ProfileText
from memory.service.profile_layout import FOOT, OPENING

_BREAK = f"\n{FOOT}\n\n"
_LINE = "\n- ["  # begins the line of one memory in a note


class ProfileUse(StrEnum):
    """With which questions a profile goes along, where none has gone along in the conversation before."""

    WITH_MEMORIES = "with_memories"  # for which memories were found
    SEARCHED = "searched"  # for which memories were searched
    ALWAYS = "always"


def holds_profile(notes: Iterable[PastNote]) -> bool:
    return any(note.text.startswith(OPENING) for note in notes)


def opened_by(profile: ProfileText | None, note: PastNote | None) -> PastNote | None:
    """One note of both; None if there is neither."""
    if profile is None:
        return note
    if note is None:
        return PastNote(profile.text, profile.memory_ids, profile.tokens)
    ids = tuple(dict.fromkeys((*profile.memory_ids, *note.memory_ids)))
    return PastNote(f"{profile.text}\n\n{note.text}", ids, profile.tokens + note.tokens)


def without_profiles(notes: Mapping[int, PastNote]) -> dict[int, PastNote]:
    """The notes without the profile that opens one of them, for a request that wants none."""
    left = {index: _without_profile(note) for index, note in notes.items()}
    return {index: note for index, note in left.items() if note is not None}


def _without_profile(note: PastNote) -> PastNote | None:
    if not note.text.startswith(OPENING):
        return note
    _, _, text = note.text.partition(_BREAK)
    if not text:
        return None
    return replace(note, text=text, memory_ids=note.memory_ids[-text.count(_LINE) :])


__all__ = ["ProfileUse", "holds_profile", "opened_by", "without_profiles"]
