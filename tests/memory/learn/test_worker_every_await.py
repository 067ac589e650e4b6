"""A crash at every await of the worker, wherever it stands: the outcome is that of a run that nothing disturbed.

What the scenario does not reach fails the last test, by file and line, but for what `test_lost_locks` reaches.
"""

from __future__ import annotations

import asyncio
import copy
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from durable_state import durable_state
from learning_parts import Bench, Faults, Killed
from plain_reader import PlainReader, moves
from suspensions import AROUND_THE_JOBS, EVERY, LOCK_LOST, WRITTEN_TO, BrokenOff, awaits_of, crash_points
from turn_logs import Process, sqlite_deployment

from memory.errors import Unavailable, Unusable
from memory.learn import neighbours, plan_writer, trigger_scanner, window, window_reading, worker
from memory.learn.worker import WorkerSettings
from memory.model import Act, CarriedNote, Change, ChangeKind, Claim, RecallStatus, Receipt, Role, Turn
from memory.model.wordings import WORDINGS
from memory.ports import LearnDue, PairVerdict, StatementPair

KNOWN = "My sister lives in Oslo."
FORGOTTEN = "My parrot is called Kiki."
BUDGET = "My budget for the Hawaii trip is $10,000."
HOME, NEW_HOME = "I live in Paris.", "I live in Rome."
DENTIST, NEW_DENTIST = "My dentist appointment is on Monday.", "My dentist appointment is on Friday."
LOCKER, NEW_LOCKER = "My locker is number 41.", "Remember that my locker is number 42."
CAT, NEW_CAT = "My cat is called Tom.", "No, my cat is called Felix."
CAR = "I have a Golf and a camper van."
REWORDED = "There is a bird table in my garden."  # by a correction of what is to be forgotten
TOLD = (
    ("s1", f"{CAT} I sold the Golf."),
    ("s1", f"{BUDGET} {NEW_HOME}"),
    ("s1", NEW_CAT),
    ("s2", KNOWN),
    ("s2", "That's right."),
    ("s6", NEW_DENTIST),
    ("s7", NEW_LOCKER),
)
OF_TWO_LINES = "Noted.\nThank you."  # kept as one passage; "that's right" confirms it line by line
HALF_DONE = "My boat is called Nereid. I take the bus to work."
OVERTAKEN, UNTOUCHED = "My tent is orange.", "My guitar is red."
OF_HER_SISTER = "Please forget the guitar of my sister."  # no memory, but a turn with its words, for no summary then
USERS = ("ann", "bob", "carl", "dora", "eve", "frank", "gina", "hugo", "iris", "jack", "kim", "lena", "mona", "nora")
TWICE = "My harp is green."
IN_BOTH, PRIVATE = "My loft is dry.", "Do not store this conversation."
FORGET_ALL = "Forget everything you know about me."
SETTINGS = WorkerSettings(
    compares_arms=True,
    attempts_max=2,
    model_outage_seconds_max=1.0,
    due=LearnDue(idle_seconds=1.0),
    words_of=frozenset({Role.USER, Role.ASSISTANT}),
)
LATER_SECONDS = 1_000.0
ALONE = 1  # of the day's windows, by a worker that has no model: what is asked of memory, and nothing to relate
WATCHED = (worker, window, window_reading, plan_writer, neighbours, trigger_scanner)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ann has so many memories that neighbours are searched for; all of the others' are looked at."""
    monkeypatch.setattr(neighbours, "ALL_MAX", 3)


class Model(PlainReader):
    """A model that is away, or at fault, for some users, and alone knows that one appointment replaces another, and
    that a correction leans on what it corrects.
    """

    def __init__(self, errors: Mapping[str, Exception]) -> None:
        super().__init__(moves((DENTIST, NEW_DENTIST)))
        self._errors = errors

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        error = self._errors.get(turns[0].scope.user_id)
        if error is not None:
            raise error
        claims = await super().read(turns, context=context)
        return [replace(claim, leans=claim.act is Act.CORRECT) for claim in claims]

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        if any((pair.older, pair.newer) == (LOCKER, NEW_LOCKER) for pair in pairs):
            raise AWAY
        return await super().relate(pairs)


AWAY = Unavailable("model", "away")
NEVER = {"eve": Unusable("model", "junk"), "iris": AWAY}
DAY_BEFORE = {**NEVER, "kim": AWAY}
BAD_DAY = {**NEVER, "carl": AWAY, "dora": RuntimeError("a fault"), "gina": AWAY}


async def prepare(bench: Bench) -> None:
    """Something known, turns to learn, plans that were not carried out, one that nobody can read, a model away."""
    async with bench.deployment.start() as process:
        await bench.tell(process, f"{KNOWN} {CAR} {FORGOTTEN} {HOME} {DENTIST} {LOCKER}", session="s0")
        before = {"eve": BUDGET, "iris": BUDGET, "jack": "My kite is red.", "kim": "My lamp is green."}
        for user, said in before.items():
            await bench.tell(process, said, user=user)
        for session, said in (("s1", f"My kettle is red. {IN_BOTH}"), ("s2", IN_BOTH)):
            await bench.tell(process, said, user="mona", session=session)
        await bench.worker(process, model=Model(DAY_BEFORE), settings=SETTINGS).work_off()
        await bench.tell(process, "My fridge is full.", user="frank", session="s0")
        await bench.tell(process, "Please forget that my piano is black.", user="kim")
        await bench.worker(process, model=Model(DAY_BEFORE), settings=SETTINGS).work_off()
        await _execute(process, OF_AN_OLDER_RELEASE)
        await _broken_off(bench, process, HALF_DONE, session="s3")
        await _broken_off(bench, process, f"{UNTOUCHED} Does my sister play?", user="lena")
        await bench.tell(process, OF_HER_SISTER, user="lena", session="s1")
        await _execute(process, KNOWN_AS_A_REQUEST, OF_HER_SISTER)
        planned = Faults(name="save_plan", number=2, error=Killed(), is_after=True)
        await _broken_off(bench, process, FORGET_ALL, planned, user="frank", session="s1", receipt_id="r-2")
        await _broken_off(bench, process, OVERTAKEN, user="hugo")
        await _broken_off(bench, process, TWICE, Faults(name="apply", error=Killed(), is_after=True), user="nora")
        await _stored_by_another_window_too(bench, process, TWICE)
        async with process.ledger.write("hugo"):
            bench.deployment.clock.now += LATER_SECONDS
        await bench.tell(process, BUDGET, user="bob")
        lease = await process.log.lease(now=bench.deployment.clock(), seconds=1, due=LearnDue())
        while lease is not None and lease.user_id != "bob":
            due_at, since = bench.deployment.clock() + 5, lease.outage_since
            await process.log.retry_at(lease, due_at=due_at, reason="not yet", outage_since=since)
            lease = await process.log.lease(now=bench.deployment.clock(), seconds=1, due=LearnDue())
        assert lease is not None
        await process.log.save_plan(lease, b'{"version": 99, "changes": []}')
        await bench.tell(process, "My bicycle is green.", user="carl", project="p")
        said_by = {"gina": FORGET_ALL, "jack": "Forget what I just said.", "dora": "My car is blue.", "mona": PRIVATE}
        for user, said in said_by.items():
            await bench.tell(process, said, user=user)
        process.receipts.keep(await _receipt_of_a_note(bench))
        await bench.correct(FORGOTTEN, REWORDED)
        await bench.tell(process, "My boat is called Nereid.", session="s4", receipt_id="r-3")
        for session, message in TOLD:
            await bench.tell(process, message, session=session, answer=OF_TWO_LINES)
        await bench.tell(process, "Please forget that my parrot is called Kiki.", session="s5", receipt_id="r-1")
        bench.deployment.clock.now += LATER_SECONDS


# Requests so far were noted without what was read of them.
OF_AN_OLDER_RELEASE = "UPDATE turns SET order_claims = x''"
# As when it was learnt before the windows that wait.
KNOWN_AS_A_REQUEST = "UPDATE turns SET is_order = 1 WHERE instr(CAST(messages AS TEXT), ?)"


async def _execute(process: Process, statement: str, *values: str) -> None:
    await process.log._database.write(lambda connection: connection.raw.execute(statement, values))


async def _stored_by_another_window_too(bench: Bench, process: Process, said: str) -> None:
    """Which looked for it before the store had what the killed worker sent."""
    (row,) = await bench.memories("nora")
    async with process.ledger.write("nora") as held:
        held.touch(["elsewhere"])
        vectors = await bench.embedder.embed([said], is_urgent=False)
        await bench.store.apply("nora", [Change(ChangeKind.CREATE, replace(row, id="elsewhere"))], vectors)


async def _broken_off(bench: Bench, process: Process, said: str, faults: Faults | None = None, **told: Any) -> None:
    """Without `faults`: right before it is written."""
    faults = faults or Faults(name="apply", error=Killed())
    with pytest.raises(Killed):
        await bench.learn(process, said, worker=bench.worker(process, faults=faults, model=Model(NEVER)), **told)


async def _receipt_of_a_note(bench: Bench) -> Receipt:
    """The worker looks up what the note told."""
    told = next(memory for memory in await bench.memories() if "Golf" in memory.content)
    note = CarriedNote(None, (told.id,), 9, is_new=True)
    return Receipt("r-3", "ann", bench.deployment.clock(), RecallStatus.USED, "asked", notes=(note,))


async def recover(bench: Bench) -> dict[str, Any]:
    """Somebody else takes over, the model is back; what stands in the end, for comparison."""
    async with bench.deployment.start() as survivor:
        for _ in range(3):
            bench.deployment.clock.now += LATER_SECONDS
            await bench.worker(survivor, model=Model(NEVER), settings=SETTINGS).work_off()
        return await outcome(bench, survivor)


async def outcome(bench: Bench, process: Process) -> dict[str, Any]:
    """All rows but for the times of the system, all dead letters, and that nothing is left to do or held."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for user in USERS:
        memories = await bench.memories(user, project="p" if user == "carl" else "")
        contents = {memory.id: memory.content for memory in memories}
        for memory in memories:
            replaced_by = contents.get(memory.superseded_by, memory.superseded_by)
            state = memory.status.value, replaced_by, memory.said_at, memory.invalid_at, round(memory.confidence, 6)
            evidence = frozenset((e.turn_id, e.quote, e.role) for e in memory.evidence)
            rows[(user, memory.content, *state, evidence, WORDINGS in memory.metadata)] += 1
        assert (await process.ledger.revision(user)).is_settled
        assert (await process.log.backlog(user, opened_before=1e12)).pending == 0
    letters = await process.log.dead_letters(limit=10)
    return {"rows": rows, "dead letters": sorted((letter.user_id, letter.reason) for letter in letters)}


async def a_bench(folder: Path) -> Bench:
    bench = Bench(sqlite_deployment(folder))
    await prepare(bench)
    return bench


async def a_bad_day(bench: Bench, process: Process, faults: Faults) -> None:
    """All that is due, with every call to a part suspending."""
    for number in range(ALONE + 1):
        await a_window(bench, process, faults, number)
    await bench.worker(process, faults=faults, model=Model(BAD_DAY), settings=SETTINGS).work_off()


async def a_window(bench: Bench, process: Process, faults: Faults, number: int) -> bool:
    """The `number`-th window of the bad day, by a worker of its own; whether there was any."""
    model = None if number == ALONE else Model(BAD_DAY)
    worker = bench.worker(process, faults=faults, model=model, settings=SETTINGS)
    await worker._trigger_scanner.scan()
    lease = await worker._lease()
    if lease is not None:
        await worker._handle(lease)
    return lease is not None


def copy_of(bench: Bench, source: Path, folder: Path) -> Bench:
    """As it stands, in another folder: nobody has it open."""
    shutil.copytree(source, folder)
    copied = Bench(sqlite_deployment(folder), store=copy.deepcopy(bench.store))
    copied.deployment.clock.now = bench.deployment.clock.now
    return copied


async def broken_off_at(bench: Bench, window_number: int, number: int, error: BaseException, *, is_after: bool) -> bool:
    """Whether the worker reached that suspension in that window."""
    async with bench.deployment.start() as dying:
        one = a_window(bench, dying, Faults(is_slow=True), window_number)
        run = BrokenOff(one, at=number, error=error, is_after=is_after)
        with suppress(type(error)):
            await run
    return run.suspensions >= number


async def test_the_quiet_run_is_what_it_is_meant_to_be(tmp_path: Path) -> None:
    bench = await a_bench(tmp_path / "quiet")
    found = await recover(bench)
    assert [user for user, _ in found["dead letters"]] == ["bob", "eve", "iris"]
    assert "the stored plan has version 99" in found["dead letters"][0][1]
    changed = [NEW_DENTIST, NEW_HOME, f"{CAT} {NEW_CAT}", NEW_LOCKER, LOCKER, REWORDED]
    once = [BUDGET, CAR, KNOWN, IN_BOTH, OVERTAKEN, TWICE, UNTOUCHED, "I sold the Golf.", "I take the bus to work."]
    of_one_session = ["My bicycle is green.", "My boat is called Nereid.", "My car is blue.", "My lamp is green."]
    rows = [(content, status) for _, content, status, *_ in found["rows"].elements()]
    assert sorted(content for content, status in rows if status == "superseded") == sorted([CAT, DENTIST, HOME])
    active = sorted(content for content, status in rows if status == "active")
    assert active == sorted([*changed, *once, *of_one_session])
    assert len(rows) == len(active) + 3


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(
    ("error", "is_after"),
    [(Killed(), False), (asyncio.CancelledError(), True)],
    ids=["killed before it happens", "cancelled when it has happened"],
)
async def test_a_crash_at_any_await_leaves_what_an_undisturbed_run_leaves(
    tmp_path: Path, error: BaseException, every: int, *, is_after: bool
) -> None:
    bench, folder = await a_bench(tmp_path / "begin"), tmp_path / "begin"
    undisturbed = await recover(copy_of(bench, folder, tmp_path / "quiet"))
    broken_off, window_number, is_window = 0, 0, True
    recovered: set[str] = set()  # from these states: what somebody died waiting to read changed nothing
    while is_window:  # each begins where the one before it ended well
        for number in crash_points(every):
            place = tmp_path / f"{window_number}-{number}"
            dying = copy_of(bench, folder, place)
            is_reached = await broken_off_at(dying, window_number, number, error, is_after=is_after)
            left = durable_state(place / "turns.sqlite", dying.store)
            if left not in recovered:
                assert await recover(dying) == undisturbed, f"window {window_number} broken off at suspension {number}"
                recovered.add(left)
            shutil.rmtree(place)
            broken_off += is_reached
            if not is_reached:
                break
        async with bench.deployment.start() as process:
            is_window = await a_window(bench, process, Faults(is_slow=True), window_number)
        window_number += 1
    whole = await a_whole_bad_day(tmp_path / "whole", Faults(is_slow=True))
    assert (broken_off + window_number) * every >= whole.suspensions > 60
    assert len(recovered) > 60 / every, "crashes left hardly anything to recover from: the test shows little"


async def a_whole_bad_day(folder: Path, faults: Faults) -> BrokenOff:
    """Which nobody broke off."""
    bench = await a_bench(folder)
    async with bench.deployment.start() as process:
        run = BrokenOff(a_bad_day(bench, process, faults), at=0, error=Killed())
        await run
    return run


async def test_no_await_of_the_worker_is_left_out(tmp_path: Path) -> None:
    faults = Faults(is_slow=True)
    lines = (await a_whole_bad_day(tmp_path / "watched", faults)).lines | faults.callers
    for module in WATCHED:
        places = awaits_of(Path(str(module.__file__)), without=AROUND_THE_JOBS | LOCK_LOST | WRITTEN_TO)
        assert [str(place) for place in places if not place.is_among(lines)] == []
