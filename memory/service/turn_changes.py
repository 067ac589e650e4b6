"""Makes memories follow what became of the turns that they rest on. Logs no content.

Branches of conversations are abandoned and resumed (`branch_evidence` decides); turns leave the conversation record:
trimmed, expired, deleted, rewritten. Everything happens under the user's lock: a window that was being learnt when its
turn went has then either written its rows or lost its lease. Interrupted anywhere, it is repeated; several workers may
run it: they only delay each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from memory.model.raw_words import raw_row_ids
from memory.model.withdrawn import is_of_abandoned_branch
from memory.ports import Clock, ConversationRecord, MemoryBank, MemoryFilter, RequestStores
from memory.runtime.tracing import Telemetry
from memory.service.branch_evidence import shifted
from memory.service.locked_writes import rewrite_rows
from memory.service.memory_scan import scanned

TURNS_AT_ONCE = 100  # under one hold of the user's lock: 25 possible rows each
BACK_OFF_SECONDS = 0.2  # doubled at each failure
BACK_OFF_SECONDS_MAX = 5.0
FORGOTTEN_SECONDS = 60.0  # after the pause: a user who still fails is tried again long before


class TurnChanges:
    """Methods raise as `UserBackOff.work_off`: others do not wait for those whose memories cannot be changed."""

    def __init__(
        self, *, turn_log: ConversationRecord, memories: MemoryBank, stores: RequestStores, telemetry: Telemetry
    ) -> None:
        self._trees = turn_log.trees
        self._removed = turn_log.removed_words
        self._store = memories.store
        self._ledger = memories.ledger
        self._notes = stores.notes
        self._profiles = stores.profiles
        self._clock = telemetry.clock
        self._facts = telemetry.metrics.facts
        self._of_branches = UserBackOff(telemetry.clock)
        self._of_words = UserBackOff(telemetry.clock)

    async def settle_branches(self) -> None:
        """Withdraw what rests on abandoned branches, and restore what rests on resumed ones, of all users."""
        await self._of_branches.work_off(self._trees.next_shift, self._settle)

    async def delete_words(self) -> None:
        """Delete the rows with the raw words of all removed turns, and the notes that hold one of them."""
        await self._of_words.work_off(self._removed.next_user, self._delete)

    async def _settle(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            shift = await self._trees.shift(user_id)
            batches = scanned(self._store, MemoryFilter(user_id, status=None), held=held)
            stored = {memory.id: memory async for memories in batches for memory in memories}
            changed = shifted(stored.values(), shift, now=self._clock())
            was_abandoned = {row.id for row in changed if is_of_abandoned_branch(stored[row.id])}
            is_abandoned = {row.id for row in changed if is_of_abandoned_branch(row)}
            withdrawn, restored = is_abandoned - was_abandoned, was_abandoned - is_abandoned
            await self._drop_notes(user_id, withdrawn)
            records = await self._store.get(user_id, [row.id for row in changed]) if changed else []
            await rewrite_rows(self._store, held, user_id, changed, records)  # at once: they depend on each other
            # They do not come back with the branch: what the user chose to say is what was said instead
            await self._delete_rows(user_id, [turn.turn_id for turn in shift.abandoned])
        await self._drop_notes(user_id, withdrawn)  # a request in progress may have stored a note of them meanwhile
        await self._trees.settle(user_id, shift)
        self._facts.labels("withdrawn").inc(len(withdrawn))
        self._facts.labels("restored").inc(len(restored))

    async def _drop_notes(self, user_id: str, memory_ids: Collection[str]) -> None:
        if memory_ids:
            await self._profiles.drop(user_id, memory_ids, now=self._clock())
            await self._notes.drop(user_id, memory_ids, now=self._clock())

    async def _delete(self, user_id: str) -> None:
        async with self._ledger.write(user_id) as held:
            turn_ids = await self._removed.turn_ids(user_id, limit=TURNS_AT_ONCE)
            await held.renew()
            await self._delete_rows(user_id, turn_ids)
        await self._removed.settle(user_id, turn_ids)

    async def _delete_rows(self, user_id: str, turn_ids: Sequence[str]) -> None:
        if turn_ids:
            row_ids = [one for turn_id in turn_ids for one in raw_row_ids(user_id, turn_id)]
            await self._store.delete(user_id, row_ids)
            await self._notes.drop(user_id, row_ids, now=self._clock())


class UserBackOff:
    """Of one periodic task, in memory. Who is not tried again, because others did the work, is dropped in time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pauses: dict[str, tuple[float, float]] = {}  # seconds, and until when, by user

    async def work_off(
        self, next_user: Callable[..., Awaitable[str | None]], work: Callable[[str], Awaitable[None]]
    ) -> None:
        """Do the work of all users, whom `next_user` names one by one, `without` those that wait.

        Raises the error of the first user for whom it fails; the next calls leave that user out for a while.
        """
        while user_id := await next_user(without=self.waiting()):
            self.begin(user_id)  # before it is tried, so that any failure counts, also one that ends the round
            await work(user_id)
            self._pauses.pop(user_id, None)

    def begin(self, user_id: str) -> None:
        before, _ = self._pauses.get(user_id, (BACK_OFF_SECONDS / 2, 0.0))
        seconds = min(2 * before, BACK_OFF_SECONDS_MAX)
        self._pauses[user_id] = seconds, self._clock() + seconds

    def waiting(self) -> set[str]:
        now = self._clock()
        self._pauses = {one: pause for one, pause in self._pauses.items() if pause[1] > now - FORGOTTEN_SECONDS}
        return {user_id for user_id, (_, until) in self._pauses.items() if until > now}
