"""Recall never fails a request, never holds one past the deadline, and sheds before it costs an embedding.

What a conversation was told goes along whatever becomes of the search; nobody's wait costs somebody else theirs. As
many searches run as will end in time, judged by how long they take; others wait for a place, but not for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from api_shapes import AskedShape
from disturbed_calls import down
from prometheus_client import CollectorRegistry
from recall_rig import KAYAK, NOW, SETTINGS, Rig, always, pass_time, request_of, request_with, rigged, until

from memory.model import Memory, MemoryStatus, Placement, RecallStatus, RequestOptions, Scope, Vector
from memory.recall import admission, stages
from memory.recall.admission import ALWAYS, LEFT_MIN, RUN_SHARE, WAITING_MAX, Admission
from memory.recall.pipeline import RecallOutcome
from memory.recall.search_flow import CALLERS_AT_ONCE
from memory.recall.stages import RecallSettings
from memory.runtime.metrics import Metrics

QUESTION = "Tell me, where is my kayak stored now?"  # not what the rig warms up with: that note would be put back
FIRST = {"role": "user", "content": QUESTION}
ANSWERED = {"role": "assistant", "content": "At the boathouse."}
SECOND = [FIRST, ANSWERED, {"role": "user", "content": "And where did I put the paddles of it?"}]


async def recalled(rig: Rig, text: str = QUESTION, user: str = "u", **config: object) -> RecallOutcome:
    return await rig.recall.recall(Scope(user), request_of(text, **config))


async def test_a_late_embedding_ends_at_the_deadline(rig: Rig) -> None:
    rig.embedder.hangs_on = always
    async with asyncio.TaskGroup() as group:
        late = group.create_task(recalled(rig))
        await until(lambda: rig.embedder.calls)
        pass_time(SETTINGS.deadline_seconds)
    assert (late.result().status, late.result().reason) == (RecallStatus.UNAVAILABLE, "deadline")


async def test_an_embedder_that_is_down_costs_the_memory_and_not_the_request(rig: Rig) -> None:
    rig.embedder.is_down = True
    outcome = await recalled(rig)
    assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.UNAVAILABLE, "embedder", ())
    rig.embedder.is_down = False
    assert (await recalled(rig)).status is RecallStatus.USED
    assert rig.embedder.is_asked_as_query


async def test_what_is_too_much_is_shed_before_it_costs_an_embedding(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "WAITING_MAX", 0)
    rig.embedder.hangs_on = always
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(recalled(rig, f"Where is my kayak number {n}?")) for n in range(12)]
        shed = 12 - SETTINGS.in_flight_max
        await until(lambda: (sum(map(asyncio.Task.done, tasks)), rig.embedder.calls) == (shed, SETTINGS.in_flight_max))
        rig.embedder.may_go_on.set()
    assert sum(task.result().reason == "busy" for task in tasks) == shed
    assert rig.counted("memproxy_recall_shed_total") == shed


@pytest.mark.parametrize(
    ("wanted", "learnt", "placed"),
    [
        (Placement.BEFORE_LAST_USER, None, "middle"),
        (Placement.BEFORE_LAST_USER, Placement.SYSTEM, "system"),
        (Placement.SYSTEM, None, "system"),
        (Placement.OFF, Placement.SYSTEM, "nowhere"),
    ],
)
async def test_of_setting_and_lesson_the_more_careful_one_counts(
    tmp_path: Path, asked_shape: AskedShape, wanted: Placement, learnt: Placement | None, placed: str
) -> None:
    """But for the other APIs: there a note stands inside the last user message, and no template refuses that."""
    if not asked_shape.shape.is_bound_by_templates and wanted is Placement.BEFORE_LAST_USER:
        placed = "middle"
    async with rigged(tmp_path, RecallSettings(deadline_seconds=30.0, placement=wanted)) as rig:
        if learnt is not None:
            await rig.model_capabilities.learn("m", learnt)
        outcome = await recalled(rig)
        where = "nowhere" if not outcome.notes else "system" if outcome.notes[0].before is None else "middle"
        assert where == placed


@pytest.mark.parametrize(
    ("config", "reason"), [({"enabled": False}, "disabled"), ({"placement": "off"}, "placement_off")]
)
async def test_where_no_note_may_stand_nothing_is_searched(rig: Rig, config: dict[str, object], reason: str) -> None:
    outcome = await recalled(rig, **config)
    assert (outcome.status, outcome.reason, rig.embedder.calls) == (RecallStatus.DISABLED, reason, 0)


async def test_a_chat_whose_note_was_overtaken_is_corrected_and_its_prefix_stays(rig: Rig) -> None:
    moved, gone = "My kayak hangs in the garage now", MemoryStatus.SUPERSEDED
    first = await recalled(rig)
    assert KAYAK in first.notes[0].text
    await rig.write(
        Memory("m1", "u", KAYAK, NOW, NOW, NOW, status=gone, superseded_by="m2", superseded_at=NOW),
        Memory("m2", "u", moved, NOW, NOW, NOW),
    )
    later = [*SECOND[:2], {"role": "user", "content": "And what did my violin lessons cost last year?"}]
    second = await rig.recall.recall(Scope("u"), request_with(later))
    assert (second.status, second.reason, second.notes[0]) == (RecallStatus.USED, "found", first.notes[0])
    assert (moved in second.notes[1].text, KAYAK in second.notes[1].text) == (True, False)
    later += [SECOND[1], {"role": "user", "content": "Did my violin teacher call?"}]
    assert (await rig.recall.recall(Scope("u"), request_with(later))).notes == second.notes


async def nothing(*_: object, **__: object) -> None:
    """No set."""


@pytest.mark.parametrize("failing", ["embedder", "sets"])
async def test_earlier_notes_outlive_a_failing_search(rig: Rig, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await recalled(rig)
    if failing == "embedder":
        rig.embedder.is_down = True
    else:
        monkeypatch.setattr(rig.corpora, "corpus", nothing)
        monkeypatch.setattr(rig.store, "search", down)
    outcome = await rig.recall.recall(Scope("u"), request_with(SECOND))
    assert outcome.notes == first.notes != ()
    assert (outcome.status, outcome.reason) == (RecallStatus.USED, "put_back")


async def test_who_waits_for_the_store_takes_nobody_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rigged(tmp_path, RecallSettings(deadline_seconds=30.0, in_flight_max=1)) as rig:
        search, may_search, is_searching = rig.store.search, asyncio.Event(), asyncio.Event()

        async def slow(*given: object, **named: object) -> object:
            is_searching.set()
            await may_search.wait()
            return await search(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(rig.store, "search", slow)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(recalled(rig, "Where is my tent?", "new"))
            await is_searching.wait()  # it is embedded, and waits for the store, since there is no set
            assert (await recalled(rig)).status is RecallStatus.USED
            assert not waiting.done()
            may_search.set()


async def test_while_its_set_is_loading_a_user_s_store_is_searched(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError

    await rig.write(Memory("w1", "w", KAYAK, NOW, NOW, NOW))
    monkeypatch.setattr(rig.store, "load_few", never)
    outcome = await recalled(rig, user="w")
    assert (outcome.status, outcome.count) == (RecallStatus.USED, 1)


async def test_of_two_alike_the_one_of_this_session_comes_first(rig: Rig) -> None:
    said = ("one", "two", "six")
    await rig.write(*(Memory(one, "v", f"{KAYAK} {one}", NOW, NOW, NOW, session_id=one) for one in said))
    for one in said:
        outcome = await rig.recall.recall(Scope("v", session_id=one), request_of(QUESTION))
        assert (await rig.receipt(outcome, user_id="v")).candidates[0].memory_id == one


async def test_a_flood_of_searches_leaves_the_embedder_to_the_chats(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    embed, under_way, most = rig.embedder.embed, 0, 0

    async def counted(texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await embed(texts, is_urgent=is_urgent, as_query=as_query)

    monkeypatch.setattr(rig.embedder, "embed", counted)
    async with asyncio.TaskGroup() as group:
        for number in range(3 * CALLERS_AT_ONCE):
            asked = {"query": f"kayak {number}", "history": (), "options": RequestOptions()}
            group.create_task(rig.recall.search(Scope("u"), **asked))  # type: ignore[arg-type]
    assert most == CALLERS_AT_ONCE


async def test_a_memory_in_a_new_note_counts_as_used_once(rig: Rig) -> None:
    """Neither when the note is put back, nor where there is none."""
    before = (await rig.uses())["m1"].counted
    await recalled(rig)
    assert (await rig.recall.recall(Scope("u"), request_with([*SECOND[:2], {**FIRST, "content": "Thanks!"}]))).notes
    await recalled(rig, "Hello!")
    await recalled(rig, "Where exactly is my kayak?", placement="off")
    assert (await rig.uses())["m1"].counted == before + 1


async def test_a_stage_of_less_than_a_millisecond_has_a_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop's own clock has whole milliseconds."""
    reached, times = stages.Reached(Metrics(CollectorRegistry())), iter([1.0, 1.0004])
    monkeypatch.setattr(stages, "perf_counter", lambda: next(times))
    with reached.timed("embed"):
        pass
    assert reached.timings_ms()["embed"] == pytest.approx(0.4) == reached.timings()[0].took * 1000


DEADLINE = 60.0  # nobody comes near it
EACH = RUN_SHARE * DEADLINE / 8  # so that there is room for eight
HALF = EACH * 2  # and here for four


async def learnt(*, each: float, at_once_max: int = 100) -> Admission:
    """One that has seen many searches, alone, that took that long."""
    admission = Admission(at_once_max=at_once_max, deadline_seconds=DEADLINE)
    for _ in range(100):
        await searched(admission, each)
    return admission


async def searched(admission: Admission, seconds: float, *, is_complete: bool = True) -> None:
    async with admission.slot(DEADLINE) as slot:
        slot.release(seconds, is_complete=is_complete)


async def room(admission: Admission) -> int:
    """How many it lets in at a time."""
    in_vain = LEFT_MIN * DEADLINE  # time for a search, but none to wait for a place
    async with AsyncExitStack() as stack:
        while await stack.enter_async_context(admission.slot(in_vain)) is not None:
            pass
        return admission.in_flight


async def test_as_many_are_let_in_as_end_within_their_share_of_the_deadline() -> None:
    assert await room(await learnt(each=EACH * 1.001)) == 7
    assert await room(await learnt(each=EACH * 0.999)) == 8
    assert await room(await learnt(each=HALF * 0.999)) == 4
    assert await room(await learnt(each=EACH / 100, at_once_max=16)) == 16


async def test_what_cannot_end_in_time_any_more_is_not_begun_and_nobody_waits_longer_than_leaves_time_for_it() -> None:
    admission = await learnt(each=EACH, at_once_max=1)
    assert not any([await is_let_in(admission, left) for left in (LEFT_MIN * DEADLINE - 0.001, 0.0, -1.0)])
    async with admission.slot(DEADLINE):
        assert not await is_let_in(admission, LEFT_MIN * DEADLINE + 0.02)
    assert admission.in_flight == 0
    await searched(admission, EACH)  # the place of the one that gave up waiting is not lost


async def test_however_slow_it_looks_some_are_let_in_so_that_it_learns_when_it_is_over() -> None:
    admission = await learnt(each=10 * DEADLINE)
    assert await room(admission) == ALWAYS
    for _ in range(100):
        await searched(admission, EACH * 0.999)
    assert await room(admission) > ALWAYS


async def test_one_that_failed_quickly_tells_nothing() -> None:
    admission = await learnt(each=HALF * 0.999)
    for number in range(100):
        await searched(admission, (0.0, 0.001)[number % 2], is_complete=False)
    assert await room(admission) == 4


async def test_what_ran_beside_others_counts_for_its_part_only() -> None:
    admission = Admission(at_once_max=100, deadline_seconds=DEADLINE)
    for _ in range(100):
        async with AsyncExitStack() as stack:
            places = [await stack.enter_async_context(admission.slot(DEADLINE)) for _ in range(ALWAYS)]
            places[-1].release(ALWAYS * EACH * 0.999, is_complete=True)
    assert await room(admission) == 8


async def test_who_finds_no_place_waits_for_one_and_the_first_to_come_is_the_first_to_get_one() -> None:
    admission, order = await learnt(each=EACH, at_once_max=1), []

    async def search(name: str) -> None:
        async with admission.slot(DEADLINE) as slot:
            order.append((name, slot is not None))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(search(name))
    assert order == [("a", True), ("b", True), ("c", True)]
    assert admission.in_flight == 0


async def test_a_place_that_is_given_to_somebody_who_has_just_left_goes_to_the_next() -> None:
    admission = await learnt(each=EACH, at_once_max=1)
    async with asyncio.TaskGroup() as group:
        async with admission.slot(DEADLINE):
            leaving, staying = group.create_task(is_let_in(admission)), group.create_task(is_let_in(admission))
            await asyncio.sleep(0)  # both wait
        leaving.cancel()  # in the same turn of the loop in which it is given the place
    assert staying.result()
    assert admission.in_flight == 0


async def test_a_crowd_without_end_is_not_kept_waiting() -> None:
    admission = await learnt(each=EACH, at_once_max=1)
    async with asyncio.TaskGroup() as group, admission.slot(DEADLINE):
        waiting = [group.create_task(is_let_in(admission)) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0)  # all wait
        assert not await is_let_in(admission)
        assert not any(task.done() for task in waiting)
    assert all(task.result() for task in waiting)


async def is_let_in(admission: Admission, left: float = DEADLINE) -> bool:
    async with admission.slot(left) as slot:
        return slot is not None


async def test_a_place_is_free_as_soon_as_it_is_left_and_only_once() -> None:
    admission = await learnt(each=EACH, at_once_max=1)
    async with admission.slot(DEADLINE) as first:
        first.release(EACH, is_complete=True)
        async with admission.slot(LEFT_MIN * DEADLINE) as second:  # while the first goes on with its search
            assert second is not None
            first.release(EACH, is_complete=True)
            assert admission.in_flight == 1
    assert admission.in_flight == 0
