"""What the worker counts of conversations with an arm, and what the report finds of it on record."""

from __future__ import annotations

from pathlib import Path

from claims import claim, turn
from learning_parts import Bench, Faults
from turn_logs import START, Process

from memory.adapters.sql.receipts import SqlHoldoutRecord
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.learn.worker import WorkerSettings
from memory.model import Act, Change, ChangeKind, Evidence, Memory, RecallStatus, Receipt
from memory.model.arms import ComparedTurn
from memory.service.holdout_signs import TurnSigns, signs_of

COMPARES = WorkerSettings(compares_arms=True)
HOME = "I live in Ulm."


async def asked(
    bench: Bench, process: Process, text: str, *, arm: str = "", session: str = "s1", user: str = "ann"
) -> str:
    """A turn and its receipt, as a chat leaves them; the receipt's id."""
    signals = {"arm": arm, "note_tokens": 40} if arm else {}
    receipt_id = f"r{next(bench.numbers)}"
    process.receipts.keep(Receipt(receipt_id, user, START, RecallStatus.USED, "found", signals))
    while await process.receipts.get(user, receipt_id) is None:
        continue
    await bench.tell(process, text, receipt_id=receipt_id, session=session, user=user)
    return receipt_id


def signs(bench: Bench, arm: str) -> list[float]:
    """Follow-ups, corrections and repeated facts."""
    names = ("follow_up", "correction", "repeated_fact")
    return [bench.count("memproxy_holdout_signs_total", arm=arm, sign=sign) for sign in names]


async def on_record(folder: Path, *, since: float = 0.0) -> list[ComparedTurn]:
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        return [turn async for turn in SqlHoldoutRecord(database).turns(since=since)]


async def test_repeated_facts_and_follow_ups_are_counted_by_arm(bench: Bench, process: Process) -> None:
    await bench.learn(process, HOME, session="before")
    await asked(bench, process, "Where do I live?", arm="held_out")
    repeated = await asked(bench, process, HOME)
    await asked(bench, process, "Where do I live?", arm="noted", session="s2")
    await bench.worker(process, settings=COMPARES).work_off()
    assert (signs(bench, "held_out"), signs(bench, "noted")) == ([1, 0, 1], [0, 0, 0])
    assert bench.count("memproxy_holdout_turns_total", arm="held_out") == 2
    assert bench.count("memproxy_holdout_answer_tokens_count", arm="noted") == 1
    receipt = await process.receipts.get("ann", repeated)
    assert receipt is not None
    assert receipt.outcome == {"corrections": 0, "repeated_facts": 1}


async def test_a_turn_that_is_learnt_later_belongs_to_the_arm_of_its_session(bench: Bench, process: Process) -> None:
    await bench.tell(process, HOME, session="before")
    await asked(bench, process, "Where do I live?", arm="noted")
    await bench.worker(process, settings=COMPARES).work_off()
    await asked(bench, process, HOME)
    await bench.worker(process, settings=COMPARES).work_off()
    assert signs(bench, "noted") == [1, 0, 1]


async def test_conversations_without_an_arm_count_nowhere(bench: Bench, process: Process) -> None:
    for _ in range(2):
        await asked(bench, process, HOME)
    await bench.tell(process, HOME)
    await bench.worker(process, settings=COMPARES).work_off()
    assert (signs(bench, "held_out"), signs(bench, "noted")) == ([0, 0, 0], [0, 0, 0])


async def test_a_failure_to_count_never_stops_learning(bench: Bench, process: Process) -> None:
    await asked(bench, process, HOME, arm="noted")
    faults = Faults(name="context", number=2, error=Unavailable("turn_log", "a test"))
    await bench.worker(process, settings=COMPARES, faults=faults).work_off()
    assert await bench.contents() == [HOME]
    assert bench.count("memproxy_windows_total", outcome="learnt") == 1


async def test_the_record_has_no_words_no_ids_and_only_the_time_asked_for(bench: Bench, tmp_path: Path) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, HOME, arm="noted", user="ann.lee")
        await asked(bench, process, HOME, user="ann.lee")
    found = await on_record(tmp_path)
    assert len(found) == 2
    assert len({turn.session for turn in found}) == 1
    for private in ("ann.lee", "Ulm", "s1"):
        assert private not in str(found)
    assert await on_record(tmp_path, since=START + 1_000) == []


def test_corrections_and_repetitions_are_counted_in_the_turn_that_holds_them() -> None:
    claims = claim("No, I live in Bonn.", act=Act.CORRECT, turn="t2"), claim("I like tea.", turn="t2")
    was_known = Memory("m", "ann", HOME, START, START, START, evidence=(Evidence(HOME, "t0"), Evidence(HOME, "t2")))
    raised = Memory("n", "ann", "I like tea.", START, START, START, evidence=(Evidence("I like tea.", "t0"),))
    changes = [
        Change(ChangeKind.UPDATE, was_known),
        Change(ChangeKind.UPDATE, raised),
        Change(ChangeKind.CREATE, Memory("o", "ann", "x", START, START, START, evidence=(Evidence("x", "t2"),))),
    ]
    assert signs_of(claims, changes, turn("x", turn_id="t2")) == TurnSigns(1, 1)
    assert signs_of(claims, changes, turn("x", turn_id="t1")) == TurnSigns(0, 0)
