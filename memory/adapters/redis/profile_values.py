"""The profiles of a user as values in one hash, and their rules as pure functions. See `memory.ports.Profiles`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import msgspec

from memory.adapters.redis.log_keys import digest_of
from memory.model import Profile, ProfileLine, ProfileProse

BUILT = b"b"  # the field of the revision


class StoredProfile(msgspec.Struct, frozen=True):
    """`is_written`: whether it was tried to write prose from these lines, also in vain."""

    profile: Profile
    is_written: bool = False

    @property
    def waits_for_prose(self) -> bool:
        return not self.is_written and self.profile.is_enabled and bool(self.profile.lines)


class StoredProfiles(msgspec.Struct, frozen=True):
    """All of a user, by project. `built`: the settled revision from which they were built."""

    profiles: Mapping[str, StoredProfile]
    built: int = 0

    def profile(self, user_id: str, project_id: str) -> StoredProfile:
        return self.profiles.get(project_id) or StoredProfile(Profile(user_id, project_id))


def with_lines(
    stored: StoredProfiles, user_id: str, lines: Mapping[str, Sequence[ProfileLine]], *, now: float
) -> list[StoredProfile]:
    """The profiles that change if these are the lines of all of them."""
    projects = sorted(stored.profiles.keys() | lines.keys())
    before = [stored.profile(user_id, project_id) for project_id in projects]
    after = [
        _changed(one, replace(one.profile, lines=tuple(lines.get(one.profile.project_id, ()))), now=now)
        for one in before
    ]
    return _differing(before, after)


def without_memories(stored: StoredProfiles, memory_ids: Collection[str], *, now: float) -> list[StoredProfile]:
    before = list(stored.profiles.values())
    after = [
        _changed(one, replace(one.profile, lines=_without(one.profile.lines, memory_ids)), now=now) for one in before
    ]
    return _differing(before, after)


def with_own(
    before: StoredProfile, *, pinned: Sequence[ProfileLine] | None, is_enabled: bool | None, now: float
) -> list[StoredProfile]:
    """What the user decides; None leaves it as it is."""
    profile = before.profile
    own = replace(
        profile,
        pinned=profile.pinned if pinned is None else tuple(pinned),
        is_enabled=profile.is_enabled if is_enabled is None else is_enabled,
    )
    return _differing([before], [_changed(before, own, now=now)])


def with_prose(
    stored: StoredProfile | None, lines: Sequence[ProfileLine], prose: ProfileProse | None
) -> StoredProfile | None:
    """None if the lines from which it was written are others by now."""
    if stored is None or stored.profile.lines != tuple(lines):
        return None
    version = stored.profile.version + (prose is not None)
    return StoredProfile(replace(stored.profile, prose=prose, version=version), is_written=True)


def _changed(before: StoredProfile, after: Profile, *, now: float) -> StoredProfile:
    """A profile that has become empty stays, so that no version comes twice."""
    old = before.profile
    if after == old:
        return before
    is_reworded = (after.pinned, after.lines) != (old.pinned, old.lines)
    has_same_lines = after.lines == old.lines
    changed = replace(
        after,
        version=old.version + is_reworded,
        prose=old.prose if has_same_lines else None,
        updated_at=now,
    )
    return StoredProfile(changed, is_written=before.is_written and has_same_lines)


def _differing(before: Sequence[StoredProfile], after: Sequence[StoredProfile]) -> list[StoredProfile]:
    return [new for old, new in zip(before, after, strict=True) if new != old]


def _without(lines: Sequence[ProfileLine], memory_ids: Collection[str]) -> tuple[ProfileLine, ...]:
    return tuple(line for line in lines if line.memory_id not in memory_ids)


def field_of(project_id: str) -> str:
    return digest_of(project_id)


def encode(stored: StoredProfile) -> bytes:
    return _ENCODER.encode(stored)


def decode(stored: bytes) -> StoredProfile:
    return _DECODER.decode(stored)


def decode_all(fields: Mapping[bytes, bytes]) -> StoredProfiles:
    """Of the whole hash."""
    profiles = [decode(value) for name, value in fields.items() if name != BUILT]
    return StoredProfiles({one.profile.project_id: one for one in profiles}, int(fields.get(BUILT, b"0")))


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(StoredProfile)
