"""A worker withdraws what an abandoned branch taught, and learns what was missed, or comes in another order, as of when
it was said.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest
from hashing_embedder import HashingEmbedder
from learning_parts import Bench, Faults, Killed
from note_lookup import notes_of
from plain_reader import PlainReader, moves
from suspensions import EVERY, crash_points
from turn_logs import START, Process, a_turn, leased, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.errors import Unavailable
from memory.learn.worker import WorkerSettings
from memory.model import (
    BranchShift,
    ChainLink,
    MemoryStatus,
    Message,
    PastNote,
    ProfileLine,
    Role,
    SentConversation,
    SentExchange,
    Turn,
    TurnStatus,
)
from memory.ports import StatementReader
from memory.service.turn_changes import BACK_OFF_SECONDS_MAX

CALLS_MIN = 15  # of a worker that learns one window and settles one shift
BERLIN, PARIS = "My home is Berlin", "My home is Paris"


async def say(process: Process, turn_id: str, *texts: str, user: str = "ann", at: float = 0.0) -> None:
    """A finished turn at the end of a conversation of these texts; what is not recorded of it was missed."""
    keys = ["/".join(texts[: n + 1]) for n in range(len(texts))]
    earlier = tuple(
        SentExchange(key, (Message("user", text),), "ok") for key, text in zip(keys[:-1], texts[:-1], strict=True)
    )
    turn = a_turn(turn_id, user=user, session=f"new-{turn_id}", text=texts[-1], at=START + at)
    await process.log.trees.open(turn, SentConversation((keys[-1],), earlier))
    await process.log.finish(turn_id, status=TurnStatus.CLOSED, answer="ok", answered_at=START + at)


async def known_after(bench: Bench, process: Process, *conversations: tuple[str, ...]) -> list[str]:
    """What is active when each of these was learnt as it came: what is not recorded of it was missed."""
    for texts in conversations:
        number = next(bench.numbers)
        await say(process, f"f{number}", *texts, at=50 * number)
        await bench.worker(process).work_off()
    return await bench.active()


async def test_a_corrected_home_is_undone_with_its_branch_and_comes_back(bench: Bench, process: Process) -> None:
    assert await known_after(bench, process, (BERLIN,), (BERLIN, PARIS)) == [PARIS]
    assert await known_after(bench, process, (BERLIN, "I like tea")) == ["I like tea", BERLIN]
    assert await known_after(bench, process, (BERLIN, PARIS, "I like milk")) == ["I like milk", PARIS]
    assert bench.count("memproxy_facts_total", outcome="withdrawn") == 2
    assert bench.count("memproxy_facts_total", outcome="restored") == 1


async def test_a_withdrawn_memory_leaves_notes_and_profile_at_once(bench: Bench, process: Process) -> None:
    await known_after(bench, process, ("I like tea",), ("I like tea", "I like milk"))
    by_content = {memory.content: memory.id for memory in await bench.memories()}
    for content, memory_id in by_content.items():
        await process.notes.keep("ann", content, PastNote(content, (memory_id,), 5), made_at=START)
    lines = [ProfileLine(content, 5, memory_id) for content, memory_id in by_content.items()]
    revision = (await process.ledger.revision("ann")).number
    assert await process.profiles.put("ann", {"": lines}, revision=revision, now=START)
    await known_after(bench, process, ("I like tea", "I like juice"))
    assert [line.text for line in (await process.profiles.get("ann", [""]))[""].lines] == ["I like tea"]
    assert list(await notes_of(process.notes, "ann", list(by_content))) == ["I like tea"]


async def test_raw_words_of_an_abandoned_branch_go(bench: Bench, process: Process) -> None:
    worker = bench.worker(process, settings=WorkerSettings(words_of=frozenset({Role.USER})))
    for number, texts in enumerate((["Hm, weather"], ["Hm, weather", "And a giraffe"], ["Hm, weather", "Ho hum"])):
        await say(process, f"t{number}", *texts, at=number)
        await worker.work_off()
    assert await bench.raw_words() == ["Hm, weather", "Ho hum"]


async def test_an_abandoned_turn_explains_no_question_of_a_chain_and_is_no_context(
    bench: Bench, process: Process
) -> None:
    await say(process, "t0", "I like tea")
    await say(process, "t1", "I like tea", "Do you?", at=1)
    await bench.worker(process).work_off()
    scope = next(turn.scope for turn in [turn async for turn in process.log.turns("ann")] if turn.id == "t1")
    await process.log.chains.keep("ann", ("resp_1",), ChainLink(scope.session_id, "t1"), at=START)
    assert ids_of(await process.log.chains.said_before(scope, "resp_1", limit=9)) == ["t0", "t1"]
    await say(process, "t2", "I like tea", "I like juice", at=2)
    assert ids_of(await process.log.chains.said_before(scope, "resp_1", limit=9)) == ["t0"]
    assert ids_of(await process.log.context(await leased(process.log, START + 100), limit=5)) == ["t0"]


def ids_of(turns: Sequence[Turn]) -> list[str]:
    return [turn.id for turn in turns]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("is_after", [False, True])
async def test_killed_at_any_call_it_ends_the_same(bench: Bench, every: int, *, is_after: bool) -> None:
    """A later worker finds everything either done or still to be done."""
    for number in crash_points(every):
        user, faults = f"u{number}", Faults(number=number, error=Killed(), is_after=is_after)
        async with bench.deployment.start() as process:
            await branch(bench, process, user)
            with suppress(Killed):
                await bench.worker(process, faults=faults).work_off()
        bench.deployment.clock.now += 60  # its lease and its lock have ended
        async with bench.deployment.start() as process:
            await process.log.recover()
            await bench.worker(process).work_off()
            assert await process.log.trees.next_shift() is None
        assert await bench.active(user) == ["I like juice", BERLIN], number
        assert all(len(one.evidence) == 1 for one in await bench.memories(user, status=MemoryStatus.ACTIVE))
        if len(faults.calls) < number:
            break
    assert number > CALLS_MIN


async def test_a_user_whose_memories_cannot_be_changed_delays_nobody_else(
    bench: Bench, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, users = bench.worker(process), ("ann", "bob", "cy")
    for user in users:
        await say(process, f"{user}0", BERLIN, user=user, at=0)
        await say(process, f"{user}1", BERLIN, PARIS, user=user, at=1)
    await worker.work_off()
    for user in users:
        await say(process, f"{user}2", BERLIN, "Hello", user=user, at=2)
    settled, settle = [], process.log.trees.settle

    async def tell(user_id: str, shift: BranchShift) -> None:
        await settle(user_id, shift)
        settled.append(user_id)

    monkeypatch.setattr(process.log.trees, "settle", tell)
    async with process.ledger.write("ann"):  # somebody holds on to the lock
        with pytest.raises(Unavailable):
            await worker.work_off()
        await worker.work_off()
        assert settled == ["bob", "cy"]
    bench.deployment.clock.now += BACK_OFF_SECONDS_MAX
    await worker.work_off()
    assert settled == ["bob", "cy", "ann"]


async def branch(bench: Bench, process: Process, user: str) -> None:
    await say(process, f"{user}0", BERLIN, user=user, at=0)
    await say(process, f"{user}1", BERLIN, PARIS, user=user, at=1)
    await bench.worker(process).work_off()
    await say(process, f"{user}2", BERLIN, "I like juice", user=user, at=2)


async def test_erasing_everything_reaches_branches_and_nothing_comes_back(bench: Bench, process: Process) -> None:
    await branch(bench, process, "ann")
    bench.deployment.clock.now += 1
    await bench.erasure(process).scope("ann", "")
    await bench.worker(process).work_off()
    assert await bench.memories() == []
    await known_after(bench, process, (BERLIN, PARIS, "I like milk"))
    assert await bench.contents() == ["I like milk"]


async def test_forgetting_a_turn_of_an_abandoned_branch_lets_none_come_back(bench: Bench, process: Process) -> None:
    await branch(bench, process, "ann")
    await bench.worker(process).work_off()
    assert len((await bench.erasure(process).source("ann", "ann1")).forgotten) == 1
    assert await known_after(bench, process, (BERLIN, PARIS, "I like milk")) == ["I like milk", BERLIN]
    assert await bench.contents() == ["I like juice", "I like milk", BERLIN]


@pytest.mark.parametrize("seed", range(2))
async def test_of_a_value_the_one_said_last_on_the_path_is_valid(bench: Bench, process: Process, seed: int) -> None:
    """Random trees of moves from home to home; learnt now and then, hence also several shifts at a time."""
    chance = random.Random(seed)
    worker = bench.worker(process)
    for user in (f"u{seed}-{number}" for number in range(4)):
        paths: list[list[str]] = []
        for number in range(12):
            above = [] if not paths else chance.choice(paths) if chance.random() < 0.5 else paths[-1]
            paths.append([*above, f"My home is {user}city{number}"])
            await say(process, f"{user}-{number}", *paths[-1], user=user, at=number)
            if chance.random() < 0.6:
                await worker.work_off()
        await worker.work_off()
        rows = await bench.memories(user)
        assert [row.content for row in rows if row.status is MemoryStatus.ACTIVE] == [paths[-1][-1]]
        by_id = {row.id: row for row in rows}
        history = [row.content for row in rows if row.status is MemoryStatus.SUPERSEDED]
        assert sorted(history) == sorted(paths[-1][:-1])
        assert all(by_id[row.superseded_by].status is not MemoryStatus.ARCHIVED for row in rows if row.superseded_by)


async def test_a_missed_turn_is_learnt_once(bench: Bench, process: Process) -> None:
    worker = bench.worker(process)
    await say(process, "f0", "I like tea", at=0)
    await say(process, "f100", "I like tea", "I like milk", "I like juice", at=100)
    await say(process, "f200", "I like tea", "I like milk", "I like juice", "I like beer", at=200)
    await worker.work_off()
    assert await bench.active() == ["I like beer", "I like juice", "I like milk", "I like tea"]
    assert all(len(memory.evidence) == 1 for memory in await bench.memories())


@pytest.mark.parametrize("said_since", [[], ["My home is Rome"]])
async def test_a_missed_value_replaces_what_was_said_before_and_nothing_that_was_said_since(
    bench: Bench, process: Process, said_since: list[str]
) -> None:
    since = ((text,) for text in said_since)
    missed = ("My home is Berlin", "My home is Paris", "I like tea")
    known = await known_after(bench, process, ("My home is Berlin",), *since, missed)
    assert known == ["I like tea", *(said_since or ["My home is Paris"])]


@pytest.mark.parametrize("order", ["Forget that I like beer", "Forget everything you know about me"])
async def test_a_missed_request_deletes_nothing_and_withholds_what_was_missed_before_it(
    bench: Bench, process: Process, order: str
) -> None:
    missed, later = ("My home is Rome", order, "I like tea"), ("I like beer", "I like gin")
    known = await known_after(bench, process, ("I like beer",), ("My home is Rome",), missed, later)
    assert known == ["I like beer", "I like gin", "I like tea", "My home is Rome"]
    withheld = ("I like rum", "I like ale", "Forget that I like ale", "I like milk")
    assert await known_after(bench, process, ("I like rum",), withheld) == sorted([*known, "I like milk", "I like rum"])


async def test_what_the_user_has_asked_to_forget_since_does_not_come_back(bench: Bench, process: Process) -> None:
    missed = ("My home is Rome", "I like beer", "I like milk")
    known = await known_after(bench, process, ("My home is Rome",), ("Forget that I like beer",), missed)
    assert known == ["I like milk", "My home is Rome"]
    assert await known_after(bench, process, ("I like beer",)) == ["I like beer", "I like milk", "My home is Rome"]


# What is known in the end follows from what was said when: not from how turns were cut into windows, nor from which
# session was learnt first

ORDERS = 10
SESSIONS = 3

APPOINTMENTS = tuple(f"My dentist appointment is on {day}." for day in ("Monday", "Tuesday", "Friday", "Sunday"))
MOVES = moves(*pairwise(APPOINTMENTS))  # only to the next one: the first says nothing of the third
PLAIN = (
    *("I live in Leeds.", "I work at Nokia.", APPOINTMENTS[0], "My budget is 500.", "I live in York.", APPOINTMENTS[1]),
    *("Remember that I live in Oslo.", "My cat is called Tom.", "I work at Siemens. My sister lives in Porto."),
    *("I live in Rome.", APPOINTMENTS[2], "My sister lives in Lima.", "No, my budget is 900.", APPOINTMENTS[3]),
    "I work at Bosch.",
)
AGAIN = ("I live in York.", "My cat is called Tom.", APPOINTMENTS[0], "I work at Siemens.", "I live in Oslo.")


Row: TypeAlias = tuple[str, MemoryStatus, str, float | None]
"""What a memory says, whether it counts, and what took its place when."""


def said(statements: Sequence[str]) -> list[Turn]:
    """One turn a minute, in three sessions by turns."""
    return [
        a_turn(f"turn-{n}", session=f"s{n % SESSIONS}", text=text, at=START + 60 * n, status=TurnStatus.CLOSED)
        for n, text in enumerate(statements)
    ]


def shuffled(turns: Sequence[Turn], chance: random.Random) -> list[Turn]:
    """Of each session the turns in their order, the sessions mixed: at times one after the other, at times by turns."""
    waiting = [[turn for turn in turns if turn.scope.session_id == f"s{number}"] for number in range(SESSIONS)]
    found: list[Turn] = []
    stays = chance.random()
    while waiting := [session for session in waiting if session]:
        session = waiting[0] if chance.random() < stays else chance.choice(waiting)
        found.append(session.pop(0))
    return found


async def learnt(folder: Path, turns: Sequence[Turn], reader: StatementReader, pauses: Sequence[bool]) -> list[Row]:
    """All that is stored in the end. `pauses`: after which turns the worker comes by."""
    store, embedder = InMemoryStore(dimension=384), HashingEmbedder(dimension=384)
    bench = Bench(sqlite_deployment(folder), store=store, embedder=embedder)
    async with bench.deployment.start() as process:
        worker = bench.worker(process, reader=reader)
        for turn, is_pause in zip(turns, pauses, strict=True):
            await process.log.append(turn)
            if is_pause:
                await worker.work_off()
        await worker.work_off()
    memories = await bench.memories()
    contents = {memory.id: memory.content for memory in memories}
    rows = [(m.content, m.status, contents.get(m.superseded_by, ""), m.invalid_at) for m in memories]
    return sorted(rows, key=lambda row: row[:2])


async def in_all_orders(folder: Path, statements: Sequence[str], reader: StatementReader) -> list[list[Row]]:
    """First as it was said, then in other orders."""
    turns = said(statements)
    found = [await learnt(folder / "as said", turns, reader, [True] * len(turns))]
    for seed in range(ORDERS):
        chance = random.Random(seed)
        pause = chance.choice((0.0, 0.1, 0.5, 1.0))
        pauses = [chance.random() < pause for _ in turns]
        order = turns if seed % 5 == 0 else shuffled(turns, chance)
        found.append(await learnt(folder / str(seed), order, reader, pauses))
    return found


async def test_what_supersedes_what_and_when_does_not_depend_on_windows_or_order(tmp_path: Path) -> None:
    as_said, *others = await in_all_orders(tmp_path, PLAIN, PlainReader(MOVES))
    superseded = {content for content, status, *_ in as_said if status is MemoryStatus.SUPERSEDED}
    assert superseded >= {*APPOINTMENTS[:3], PLAIN[0]}
    assert others == [as_said] * ORDERS


async def test_what_counts_does_not_depend_on_windows_or_order_where_statements_come_again(tmp_path: Path) -> None:
    """What was said, was replaced and is said again stands as two rows where both times were learnt as they came."""
    as_said, *others = await in_all_orders(tmp_path, PLAIN + AGAIN, PlainReader(MOVES))
    active, *others_active = (
        [content for content, status, *_ in rows if status is MemoryStatus.ACTIVE] for rows in (as_said, *others)
    )
    assert others_active == [active] * ORDERS
