"""Wishes and a profile open the first note of a conversation, ahead of its memories, and are put back with it.

So they keep their place and their bytes for the whole conversation, whatever the API. A new version of the profile
reaches new conversations only; wishes that have changed go along again. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from memory.model import PastNote, ProfileText
from memory.service.profile_layout import OPENING, WISHES_OPENING

_BREAK = "\n\n"  # between the parts of a note; no line of one is empty
_LINE = "\n- ["  # begins the line of one memory in a note


class ProfileUse(StrEnum):
    """With which questions a profile goes along, where none has gone along in the conversation before."""

    WITH_MEMORIES = "with_memories"  # for which memories were found
    SEARCHED = "searched"  # for which memories were searched
    ALWAYS = "always"


def holds_profile(notes: Iterable[PastNote]) -> bool:
    return any(_parts(note.text)[1] for note in notes)


def wishes_in(notes: Sequence[PastNote]) -> str:
    """The wishes that the newest of these notes with any holds, as they stand there; "" if none does."""
    return next((wishes for note in reversed(notes) if (wishes := _parts(note.text)[0])), "")


def joined(wishes: ProfileText | None, profile: ProfileText | None) -> ProfileText | None:
    if wishes is None or profile is None:
        return wishes or profile
    text, ids = f"{wishes.text}{_BREAK}{profile.text}", tuple(dict.fromkeys((*wishes.memory_ids, *profile.memory_ids)))
    return replace(profile, text=text, memory_ids=ids, tokens=wishes.tokens + profile.tokens)


def one_note(*parts: ProfileText | PastNote | None) -> PastNote:
    """Of these parts, in this order, as far as they are there."""
    said = [one for one in parts if one is not None]
    ids = tuple(dict.fromkeys(memory_id for one in said for memory_id in one.memory_ids))
    return PastNote(_BREAK.join(one.text for one in said), ids, sum(one.tokens for one in said))


def without_profiles(notes: Mapping[int, PastNote]) -> dict[int, PastNote]:
    """The notes without the profile that opens one of them, for a request that wants none."""
    left = {index: _without_profile(note) for index, note in notes.items()}
    return {index: note for index, note in left.items() if note is not None}


def _without_profile(note: PastNote) -> PastNote | None:
    wishes, profile, text = _parts(note.text)
    if not wishes and not profile:
        return note
    return replace(note, text=text, memory_ids=note.memory_ids[-text.count(_LINE) :]) if text else None


def _parts(text: str) -> tuple[str, str, str]:
    """The wishes, the profile, and the rest of a note."""
    parts = text.split(_BREAK)
    wishes = parts.pop(0) if text.startswith(WISHES_OPENING) else ""
    profile = parts.pop(0) if parts and parts[0].startswith(OPENING) else ""
    return wishes, profile, _BREAK.join(parts)
