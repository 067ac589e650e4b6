"""Which turns' words left the record. On every adapter."""

from __future__ import annotations

from recorded import learn_all
from turn_logs import tell

from memory.model import TurnStatus
from memory.ports import TurnLog


async def test_nothing_is_removed_at_first_nor_by_reading_or_learning(log: TurnLog) -> None:
    await tell(log, "t1")
    await learn_all(log)
    assert await log.removed_words.next_user() is None
    assert await log.removed_words.turn_ids("ann", limit=10) == []


async def test_a_deleted_turn_is_named_until_it_is_settled(log: TurnLog) -> None:
    for turn_id in ("t1", "t2"):
        await tell(log, turn_id)
    await learn_all(log)
    await log.messages.delete_turns("ann", ["t1"])
    assert await log.removed_words.next_user() == "ann"
    assert await log.removed_words.next_user(without=["ann"]) is None
    assert await log.removed_words.turn_ids("ann", limit=10) == ["t1"]
    assert await log.removed_words.turn_ids("bob", limit=10) == []
    await log.removed_words.settle("bob", ["t1"])
    assert await log.removed_words.next_user() == "ann"
    await log.removed_words.settle("ann", ["t1"])
    assert await log.removed_words.next_user() is None


async def test_at_most_so_many_are_named_at_a_time(log: TurnLog) -> None:
    for turn_id in ("t1", "t2", "t3"):
        await tell(log, turn_id)
    await log.messages.delete_turns("ann", ["t1", "t2", "t3"])
    assert len(await log.removed_words.turn_ids("ann", limit=2)) == 2


async def test_a_turn_that_taught_nothing_has_no_words_to_remove(log: TurnLog) -> None:
    await tell(log, "t1", status=TurnStatus.FAILED)
    await log.messages.delete_turns("ann", ["t1"])
    assert await log.removed_words.next_user() is None


async def test_erasing_the_record_leaves_no_trace(log: TurnLog) -> None:
    await tell(log, "t1")
    await log.messages.erase("ann", before=1e12)
    assert await log.removed_words.next_user() is None
