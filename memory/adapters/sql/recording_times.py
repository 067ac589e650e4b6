"""Times of recording in the turn log's database. The kernel shows at once which process has died (`owners`).

A turn belongs to the process that opened it, but another one may observe its reply. So when one dies, all turns that
are open become unknown, as those of a dead process do: their words are learnt, and those that end later get answers.
"""

from __future__ import annotations

from memory.adapters.sql import turns_upkeep
from memory.adapters.sql.database import DatedOnDatabase, SqlDatabase, writes
from memory.adapters.sql.statements import Connection, statements

SQL = statements("recording_times")

# between two beats of a process that records: beyond it, it was suspended, or could not write
SILENCE_SECONDS_MAX = 30.0
GAPS_MAX = 1_000  # the newest
OPEN_SECONDS_MAX = 3_600.0  # of a turn: by then, its reply was shown to nobody, or has ended


class SqlRecordingTimes(DatedOnDatabase):
    @writes
    def beat(self, connection: Connection, *, missed_since: float | None = None) -> None:
        now, owners = self._clock(), self._database.owners
        last = dict(SQL.recorders(connection).fetchall())
        others = {other: at for other, at in last.items() if other not in ("", owners.name)}
        dead = {other: at for other, at in others.items() if owners.is_dead(connection, other)}
        begins = list(dead.values())
        if owners.name in last:
            begins += [last[owners.name]] if now - last[owners.name] > SILENCE_SECONDS_MAX else []
        elif last and not last.keys() - dead.keys() - {""}:  # nobody recorded until now
            begins.append(max(last.values()))
        begins += [] if missed_since is None else [missed_since]
        if begins:
            began_at, is_loss = min(*begins, now), missed_since is not None
            kept = SQL.insert_gap(connection, began_at=began_at, ended_at=now, is_loss=is_loss)
            SQL.delete_up_to(connection, position=kept.fetchone()[0] - GAPS_MAX)
        for other, at in dead.items():
            _leave(connection, other, at)
        SQL.put_recorder(connection, owner=owners.name, at=now)
        turns_upkeep.make_unknown(connection, now=now, opened_before=now if dead else now - OPEN_SECONDS_MAX)

    @writes
    def end(self, connection: Connection) -> None:
        owner = self._database.owners.name
        if SQL.recorder.exists(connection, owner=owner):
            _leave(connection, owner, self._clock())


def _leave(connection: Connection, owner: str, at: float) -> None:
    SQL.delete_recorder(connection, owner=owner)
    SQL.put_recorder(connection, owner="", at=at)


def gap_after(connection: Connection, at: float) -> float | None:
    """When the first gap began of those that ended after `at`; None if there is none."""
    return SQL.first_gap_after.value(connection, float, at=at)


def gap_with_room(connection: Connection, *, since: float, seconds: float, after_loss: float) -> float | None:
    """When the first gap began of those that ended since then and lasted so long; None if there is none.

    `after_loss`: seconds that one with a lost turn has to last.
    """
    return SQL.first_long_gap.value(connection, float, since=since, after_loss=after_loss, seconds=seconds)


async def newest_turn_at(database: SqlDatabase) -> float | None:
    """When the turn that this machine dates latest was recorded, for a check of the clock; None without turns. Raises
    `Unavailable`.
    """
    found: tuple[float | None] = await database.read(lambda connection: SQL.latest_opening(connection).fetchone())
    return found[0]
