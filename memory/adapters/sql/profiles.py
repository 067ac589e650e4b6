"""Profiles in SQL, in the database of the ledger, whose revisions say when a profile is out of date.

The end of each write queues the user (`ledger`), whoever wrote; so a crash between a write and the
building of a profile loses nothing. Pinned lines and lines from memories are JSON in one row per project.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from memory.adapters.sql.database import OnDatabase, reads, reads_now, writes
from memory.adapters.sql.erased_users import first_revision
from memory.adapters.sql.statements import Connection, listed, statements
from memory.model import Profile, ProfileLine

SQL = statements("profiles")

_LINES = msgspec.json.Decoder(tuple[ProfileLine, ...])


class SqlProfiles(OnDatabase):
    """`memory.ports.Profiles` in an open `SqlDatabase`, which has to be that of the ledger."""

    @reads_now
    def get(self, connection: Connection, user_id: str, project_ids: Collection[str]) -> dict[str, Profile]:
        rows = SQL.profiles_of_projects(connection, user_id=user_id, project_ids=listed(project_ids))
        found = {row[0]: profile_of(user_id, row) for row in rows}
        if not any(profile.lines for profile in found.values()):
            return found
        written = set(SQL.written_since.column(connection, user_id=user_id))
        return {project_id: without_written(profile, written) for project_id, profile in found.items()}

    @reads
    def all(self, connection: Connection, user_id: str) -> list[Profile]:
        return [profile for _, profile in sorted(_all_of(connection, user_id).items())]

    @writes
    def put(
        self,
        connection: Connection,
        user_id: str,
        lines: Mapping[str, Sequence[ProfileLine]],
        *,
        revision: int,
        now: float,
    ) -> bool:
        row = SQL.revision_of(connection, user_id=user_id).fetchone()
        if (first_revision(connection, user_id) if row is None else row[0]) != revision:
            return False
        stored = _all_of(connection, user_id)
        for project_id in stored.keys() | lines.keys():
            before = stored.get(project_id, Profile(user_id, project_id))
            _store(connection, before, replace(before, lines=tuple(lines.get(project_id, ()))), now=now)
        _set_built(connection, user_id)
        return True

    @writes
    def set_own(
        self,
        connection: Connection,
        user_id: str,
        project_id: str,
        *,
        pinned: Sequence[ProfileLine] | None = None,
        is_enabled: bool | None = None,
        now: float,
    ) -> None:
        before = _all_of(connection, user_id).get(project_id, Profile(user_id, project_id))
        after = before if pinned is None else replace(before, pinned=tuple(pinned))
        after = after if is_enabled is None else replace(after, is_enabled=is_enabled)
        _store(connection, before, after, now=now)

    @writes
    def drop(self, connection: Connection, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        for before in _all_of(connection, user_id).values():
            _store(connection, before, without_written(before, memory_ids), now=now)

    @writes
    def erase(self, connection: Connection, user_id: str, project_id: str = "") -> None:
        SQL.delete_profiles(connection, user_id=user_id, project_id=project_id)
        if not project_id:
            _set_built(connection, user_id)

    @reads
    def stale(self, connection: Connection, *, limit: int) -> list[str]:
        return SQL.stale_users.column(connection, limit=limit)

    @reads
    def is_stale(self, connection: Connection, user_id: str) -> bool:
        return SQL.stale_user.exists(connection, user_id=user_id)


def without_written(profile: Profile, memory_ids: Collection[str]) -> Profile:
    return replace(profile, lines=tuple(line for line in profile.lines if line.memory_id not in memory_ids))


def _all_of(connection: Connection, user_id: str) -> dict[str, Profile]:
    return {row[0]: profile_of(user_id, row) for row in SQL.profiles_of_user(connection, user_id=user_id)}


def profile_of(user_id: str, row: Sequence[Any]) -> Profile:
    project_id, version, pinned, lines, is_enabled, updated_at = row
    return Profile(
        user_id, project_id, version, _LINES.decode(pinned), _LINES.decode(lines), bool(is_enabled), updated_at
    )


def _set_built(connection: Connection, user_id: str) -> None:
    """The profiles are as the last settled revision says."""
    SQL.no_longer_stale(connection, user_id=user_id)
    SQL.put_built(connection, user_id=user_id)


def become_stale(connection: Connection, user_id: str) -> None:
    """The revision of the user's memories has passed to a settled one: their profiles have to be built."""
    SQL.queue_user(connection, user_id=user_id)


def _store(connection: Connection, before: Profile, after: Profile, *, now: float) -> None:
    """Write what differs. A profile that has become empty keeps its row, so that no version comes twice."""
    if after == before:
        return
    is_changed = (after.pinned, after.lines) != (before.pinned, before.lines)
    SQL.put_profile(
        connection,
        user_id=before.user_id,
        project_id=before.project_id,
        version=before.version + is_changed,
        pinned=msgspec.json.encode(after.pinned),
        lines=msgspec.json.encode(after.lines),
        enabled=after.is_enabled,
        now=now,
    )
