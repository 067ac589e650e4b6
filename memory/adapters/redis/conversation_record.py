"""Reads the recorded conversations on Redis, and withdraws turns from learning."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

from memory.adapters.redis import branch_values, queue_upkeep, user_queue
from memory.adapters.redis.branches import Branches
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.queue_values import LEFT, UserQueue
from memory.adapters.redis.session_events import Changed
from memory.adapters.redis.turn_changes import TurnChanges
from memory.adapters.redis.turn_records import TurnRecord, read_command, record_of
from memory.adapters.turn_rules import BROKEN, TAUGHT
from memory.model import ChainLink, Scope, Turn, TurnStatus
from memory.ports import ForgetRequestTurn, Lease

PAGE_TURNS = 50  # read at a time from the record; a turn may have 2 MiB


class RedisConversationRecord:
    """`memory.ports.ConversationRecord` without what hangs on it: messages, copies, trees, chains, removed words."""

    def __init__(self, client: LogClient, store: QueueStore) -> None:
        self._client = client
        self._store = store

    async def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        keys = UserKeys(user_id)
        index, after = keys.session(session_id) if session_id else keys.turns, "-inf"
        while True:
            ids = await self._client.call("ZRANGE", index, after, "+inf", "BYSCORE", "LIMIT", 0, PAGE_TURNS)
            records = await self._records(keys, ids)
            for record in records:
                yield record.turn()
                after = f"({record.seq}"
            if len(ids) < PAGE_TURNS or not records:
                return

    async def context(self, lease: Lease, *, limit: int) -> list[Turn]:
        return await self._of_session_before(lease, lease.turns[0].id, limit, TAUGHT)

    async def failed_turns(self, lease: Lease, *, limit: int) -> list[Turn]:
        return await self._of_session_before(lease, lease.turns[-1].id, limit, BROKEN)

    async def said_up_to(self, scope: Scope, link: ChainLink, *, limit: int) -> list[Turn]:
        """The last turns of the link's session in that scope, up to its turn, oldest first.

        An exchange that is not recorded, or not yet, is the last one of its session.
        """
        keys = UserKeys(scope.user_id)
        seq = await self._client.call("ZSCORE", keys.turns, link.turn_id)

        def is_wanted(record: TurnRecord) -> bool:
            begun = record.beginning
            is_in_scope = (begun.project_id, begun.agent_id) == (scope.project_id, scope.agent_id)
            return is_in_scope and record.stage not in LEFT

        newest = "+inf" if seq is None else f"{float(seq):.0f}"
        found = await self._newest(keys, keys.session(link.session_id), newest, limit, is_wanted)
        return [record.turn() for record in found]

    async def mark_forget_requests(self, lease: Lease, claims: Mapping[str, bytes]) -> None:
        keys = UserKeys(lease.user_id)

        def marking(queue: UserQueue, seqs: Sequence[bytes | None]) -> Planned[None]:
            user_queue.held(queue, lease)
            known = {turn_id: seq for turn_id, seq in zip(claims, seqs, strict=True) if seq is not None}
            fields: list[Command] = [("HSET", keys.turn(turn_id), "f", claims[turn_id]) for turn_id in known]
            index: list[Command] = [("ZADD", keys.forget_requests, seq, turn_id) for turn_id, seq in known.items()]
            return Planned(None, commands=[*fields, *index])

        reading = [("ZSCORE", keys.turns, turn_id) for turn_id in claims]
        await self._store.change(lease.user_id, marking, reading=reading)

    async def forget_requests_after(self, lease: Lease, *, limit: int) -> list[ForgetRequestTurn]:
        """Recorded after the window began; also before it, if a turn of the window was filled in and said earlier."""
        keys = UserKeys(lease.user_id)
        own = {turn.id for turn in lease.turns}
        filled_in = [turn.at for turn in lease.turns if turn.status is TurnStatus.FILLED_IN]
        beginning = await self._records(keys, [lease.turns[0].id])
        if not beginning:  # it was deleted meanwhile
            return []
        first = beginning[0]

        def is_wanted(record: TurnRecord) -> bool:
            is_later = record.seq > first.seq or (bool(filled_in) and record.beginning.said_at > min(filled_in))
            return is_later and record.beginning.id not in own and record.claims is not None

        oldest = "-inf" if filled_in else f"({first.seq}"
        found = await self._newest(keys, keys.forget_requests, "+inf", limit, is_wanted, oldest=oldest)
        return [ForgetRequestTurn(record.turn(), record.claims or b"") for record in found]

    async def withdraw(
        self,
        user_id: str,
        *,
        project_id: str = "",
        opened_before: float,
        only: Collection[str] = (),
        spare: Collection[str] = (),
    ) -> int:
        async def withdrawing(queue: UserQueue) -> Planned[int]:
            """Turns of abandoned branches, too: they must not be learnt if the client resumes the branch."""
            changes = TurnChanges(queue)
            change, count = queue_upkeep.withdraw(
                queue, project_id=project_id, opened_before=opened_before, only=only, spare=spare
            )
            if count:
                changes.apply(change)
            branches = Branches(self._client, user_id)
            left = [node.turn_id for node in await branches.all(branch_values.NOT_LEARNT)]
            chosen = [one for one in left if (not only or one in only) and one not in spare and not queue.turn(one)]
            for record in (await branches.records(chosen)).values():
                is_meant = record.stage == "abandoned" and record.beginning.opened_at < opened_before
                if is_meant and project_id in ("", record.beginning.project_id):
                    changes.restage(record.beginning.id, "withdrawn")
                    changes.sessions.append(Changed(record.beginning.session_id))
                    count += 1
            return changes.planned(count)

        return await self._store.plan(user_id, withdrawing)

    async def _of_session_before(
        self, lease: Lease, turn_id: str, limit: int, statuses: Collection[TurnStatus]
    ) -> list[Turn]:
        keys = UserKeys(lease.user_id)
        ending = await self._records(keys, [turn_id])
        if not ending:  # it was deleted meanwhile
            return []
        last = ending[0]
        found = await self._newest(
            keys,
            keys.session(lease.session_id),
            f"({last.seq}",
            limit,
            lambda record: record.status in statuses and record.stage not in LEFT,
        )
        return [record.turn() for record in found]

    async def _newest(
        self,
        keys: UserKeys,
        index: str,
        newest: str,
        limit: int,
        is_wanted: Callable[[TurnRecord], bool],
        *,
        oldest: str = "-inf",
    ) -> list[TurnRecord]:
        """The newest wanted ones between the two places of the index, oldest first, read page by page."""
        found: list[TurnRecord] = []
        while len(found) < limit:
            ids = await self._client.call("ZRANGE", index, newest, oldest, "BYSCORE", "REV", "LIMIT", 0, PAGE_TURNS)
            records = await self._records(keys, ids)
            found += [record for record in records if is_wanted(record)]
            if len(ids) < PAGE_TURNS or not records:
                break
            newest = f"({records[-1].seq}"
        return found[:limit][::-1]

    async def _records(self, keys: UserKeys, turn_ids: Sequence[str | bytes]) -> list[TurnRecord]:
        """In that order, without those that were deleted meanwhile."""
        names = [turn_id if isinstance(turn_id, str) else turn_id.decode() for turn_id in turn_ids]
        replies = await self._client.calls([read_command(keys, turn_id) for turn_id in names])
        return [record for reply in replies if (record := record_of(reply)) is not None]
