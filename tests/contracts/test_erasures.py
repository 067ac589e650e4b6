"""Erasures are durable and known to their user alone; writers are kept out meanwhile, and open chats end."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process, a_turn

from extproc.exchange import CloseTurn, OpenTurn
from extproc.recorder import TurnRecorder
from extproc.resent_history import RecordingPolicy
from extproc.server import error_boundary
from extproc.turn_links import Links
from memory.adapters.sql import erasures as sql_erasures
from memory.errors import Conflict, Unavailable
from memory.model import SentConversation, Turn, TurnStatus
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports.erasures import Erasures
from memory.runtime.metrics import Metrics

ANN, NOW = "ann.lee@example.com", 1_750_000_000.0
USER = "ann-7f3a"
SENT = SentConversation(("k1",), is_session_given=True)


@pytest.fixture
def erasures(process: Process) -> Erasures:
    return process.erasures


def asked(erasure_id: str, *, at: float = NOW) -> ErasureRequest:
    return ErasureRequest(erasure_id, at, at + 0.5, {"memories": 3, "turns_withdrawn": 0})


async def test_an_erasure_is_known_to_its_user_alone_in_all_processes_and_survives_them(deployment: Deployment) -> None:
    async with deployment.start() as first, deployment.start() as second:
        one, two = first.erasures, second.erasures
        await one.begun(ANN, asked("e1"))
        await one.begun(ANN, asked("of a part"), part="red")
        assert await two.get(ANN, "e1") == ErasureRecord(asked("e1"))
        assert await two.get(ANN, "of a part", part="red") == ErasureRecord(asked("of a part"))
        for user, erasure_id in (("bob", "e1"), (ANN.upper(), "e1"), (ANN, "e2"), (ANN, ""), (ANN, "of a part")):
            assert await two.get(user, erasure_id) is None
        for user, erasure_id, part in ((ANN, "e1", "red"), (ANN, "of a part", "blue"), ("bob", "of a part", "red")):
            assert await two.get(user, erasure_id, part=part) is None
        assert await two.pending() == [asked("e1"), asked("of a part")]
        for at in (NOW + 5, NOW + 50):  # a rewriting that is repeated keeps the time of the first
            await two.rewritten([asked("e1")], at=at)
        assert await one.pending() == [asked("of a part")]
    async with deployment.start() as third:
        assert await third.erasures.get(ANN, "e1") == ErasureRecord(asked("e1"), NOW + 5)


async def test_those_whose_files_wait_come_in_their_order(erasures: Erasures, monkeypatch: pytest.MonkeyPatch) -> None:
    async def waiting() -> list[str]:
        return [one.id for one in await erasures.pending()]

    assert await waiting() == []
    for erasure_id, at in (("e2", NOW + 9), ("e1", NOW), ("e3", NOW + 1)):
        await erasures.begun(ANN if erasure_id == "e2" else "bob", asked(erasure_id, at=at))
    assert await waiting() == ["e2", "e1", "e3"]
    await erasures.rewritten([asked("e1"), asked("unknown")], at=NOW + 20)
    assert await waiting() == ["e2", "e3"]
    await erasures.rewritten([], at=NOW + 21)
    for number in range(120):
        await erasures.begun(f"user {number}", asked(f"u{number}"))
    assert await waiting() == ["e2", "e3", *(f"u{number}" for number in range(120))]
    monkeypatch.setattr(sql_erasures, "PENDING_MAX", 2)
    assert await waiting() == ["e2", "e3"]
    await erasures.rewritten(await erasures.pending(), at=NOW)
    assert await waiting() == ["u0", "u1"]


async def test_one_that_is_begun_again_waits_again_in_its_place_with_its_new_numbers(erasures: Erasures) -> None:
    assert await erasures.latest(limit=9) == []
    for erasure_id, user in (("e1", ANN), ("e2", ANN), ("e3", "bob")):
        await erasures.begun(user, asked(erasure_id))
    await erasures.rewritten([asked("e1")], at=NOW + 9)
    again = replace(asked("e1"), deleted_at=NOW + 20, deleted={"memories": 7})
    await erasures.begun(ANN, again)
    assert again in await erasures.pending()
    assert await erasures.get(ANN, "e1") == ErasureRecord(again)
    assert [one.request.id for one in await erasures.latest(limit=9)] == ["e3", "e2", "e1"]
    assert await erasures.latest(limit=2) == [ErasureRecord(asked("e3")), ErasureRecord(asked("e2"))]
    found, later = await erasures.pending(), replace(again, deleted_at=NOW + 30)
    await erasures.begun(ANN, later)  # while files are rewritten: its rows are deleted after that has begun
    await erasures.rewritten(found, at=NOW + 35)
    assert await erasures.pending() == [later]
    assert await erasures.get(ANN, "e1") == ErasureRecord(later)


@pytest.mark.parametrize("part", ["", "red"])
async def test_the_latest_of_a_user_are_kept_whatever_part_of_them(
    erasures: Erasures, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(sql_erasures, "ERASURES_PER_USER_MAX", 3)
    await erasures.begun("bob", asked("of bob"))
    await erasures.begun(ANN, asked("first"), part=part)
    for number in range(8):
        await erasures.begun(ANN, asked(f"e{number}"), part=f"project {number}")
    names = ["e7", "e6", "e5", "of bob"]
    assert [one.request.id for one in await erasures.latest(limit=99)] == names
    assert [one.id for one in await erasures.pending()] == names[::-1]
    assert await erasures.get(ANN, "e4", part="project 4") is None


async def test_those_that_were_rewritten_long_ago_expire(erasures: Erasures) -> None:
    for number in range(30):
        await erasures.begun(f"user {number % 7}", asked(f"e{number}"), part="red" if number % 2 else "")
        if number % 3:
            await erasures.rewritten([asked(f"e{number}")], at=NOW + number)
    await erasures.expire(before=NOW + 24)
    left = [one.request.id for one in await erasures.latest(limit=99)]
    assert left == [f"e{n}" for n in reversed(range(30)) if n >= 24 or not n % 3]
    assert await erasures.get("user 0", "e7", part="red") is None
    assert len(await erasures.pending()) == 10
    await erasures.begun("user 0", asked("e7"), part="red")
    assert await erasures.get("user 0", "e7", part="red") == ErasureRecord(asked("e7"))


async def test_no_file_holds_the_user_s_id(deployment: Deployment, erasures: Erasures) -> None:
    user, erasure_id = f"{uuid.uuid4().hex}@example.com", uuid.uuid4().hex  # files may hold those of earlier tests
    await erasures.begun(user, asked(erasure_id))
    await erasures.begun(user, asked(f"{erasure_id}-2"), part=f"project of {user}")
    await erasures.rewritten([asked(erasure_id)], at=NOW)
    files = [path for path in deployment.folder.rglob("*") if path.is_file()]
    assert any(erasure_id.encode() in path.read_bytes() for path in files)
    assert not [path.name for path in files if user.encode() in path.read_bytes()]


# What keeps writers out


async def written(process: Process, user: str) -> None:
    async with process.ledger.write(user) as held:
        held.touch(["m"])


async def test_nobody_gets_a_lock_behind_the_barrier_and_everybody_does_after_it(deployment: Deployment) -> None:
    deployment.bounds.lock_wait_seconds = 0.1
    async with deployment.start() as process:
        async with process.barrier.closed(seconds=10):
            with pytest.raises(Unavailable):
                await written(process, "ann")
        await written(process, "ann")


async def test_it_closes_once_the_locks_that_are_held_are_released(process: Process) -> None:
    is_held = True

    async def close() -> None:
        async with process.barrier.closed(seconds=10):
            assert not is_held

    async with asyncio.TaskGroup() as group, process.ledger.write("ann"):
        closing = group.create_task(close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        is_held = False


async def test_a_barrier_whose_owner_died_opens_by_itself(process: Process, deployment: Deployment) -> None:
    barrier = process.barrier.closed(seconds=10)
    await barrier.__aenter__()
    deployment.clock.now += 11
    await written(process, "ann")
    await barrier.__aexit__(None, None, None)


async def test_who_writes_while_one_is_alone_is_remembered_and_forgotten_after_it(process: Process) -> None:
    await written(process, "before")
    async with process.ledger.write("during"), process.barrier.alone(seconds=10):
        await written(process, "later")
        assert list(await process.barrier.writers()) == ["during", "later"]
        with pytest.raises(Conflict):
            async with process.barrier.alone(seconds=10):
                pass
    assert list(await process.barrier.writers()) == []
    async with process.barrier.alone(seconds=10):
        assert list(await process.barrier.writers()) == []


async def test_what_a_dead_process_was_at_may_be_begun_at_once(deployment: Deployment, process: Process) -> None:
    async with deployment.start() as mortal:
        await mortal.barrier.alone(seconds=3_600).__aenter__()
    async with process.barrier.alone(seconds=10):
        pass


async def test_a_crowd_that_waits_does_not_keep_the_barrier_from_closing(process: Process, other: Process) -> None:
    """Nor does anybody of it get a lock behind it."""
    is_closed, writing = asyncio.Event(), list[str]()

    async def write(one: Process, user: str) -> None:
        async with one.ledger.write(user) as held:
            assert not is_closed.is_set()
            held.touch(["m"])
            writing.append(user)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(write((process, other)[number % 2], f"user-{number}"))
        async with process.barrier.closed(seconds=10):
            is_closed.set()
            with_lock = len(writing)
            await asyncio.sleep(0.05)
            assert len(writing) == with_lock
            is_closed.clear()
    assert len(writing) == 20


# Chats that are open meanwhile


def a_chat(turn_id: str, *, at: float) -> Turn:
    return a_turn(turn_id, user=USER, at=at, text="My door is red")


async def erase(deployment: Deployment, process: Process) -> None:
    """A second after what was said before, and a second before what is said next."""
    deployment.clock.now += 1
    async with process.ledger.write(USER) as held:
        await held.advance_erase_epoch()
    deployment.clock.now += 1


async def test_no_turn_of_the_life_before_is_recorded_after_it(deployment: Deployment, process: Process) -> None:
    began_at, trees = deployment.clock(), process.log.trees
    await trees.open(a_chat("t1", at=START), SENT)
    assert deployment.places_with(USER) != []
    await erase(deployment, process)
    assert deployment.places_with(USER) == []
    await process.log.finish("t1", status=TurnStatus.CLOSED, answer="Nice.", answered_at=START)
    assert await trees.open(a_chat("t2", at=began_at), SENT) == ""
    assert deployment.places_with(USER) == []
    assert await trees.open(a_chat("t3", at=deployment.clock()), SENT) != ""
    assert [one.id async for one in process.log.turns(USER)] == ["t3"]


async def test_its_reply_leaves_no_link_and_is_no_loss(deployment: Deployment, process: Process) -> None:
    metrics = Metrics(CollectorRegistry())
    one = a_chat("t1", at=deployment.clock())
    await erase(deployment, process)
    recorder = TurnRecorder(process.log, metrics, deployment.clock, error_boundary, RecordingPolicy(str), None)  # type: ignore[arg-type]
    async with asyncio.timeout(60), recorder:
        opening = recorder.open(OpenTurn(one, Links(USER), SENT))
        assert opening is not None
        links = Links(USER, names=("resp_1",))
        closing_turn = CloseTurn(one.id, TurnStatus.CLOSED, "Nice.", deployment.clock(), links=links)
        recorder.close(closing_turn, after=opening)
    assert deployment.places_with(USER) == []
    lost = [sample.value for one in metrics.turns_lost.collect() for sample in one.samples]
    assert sum(value for value in lost if value < 1e6) == 0.0


async def test_nor_is_one_that_is_opened_meanwhile(deployment: Deployment, process: Process, other: Process) -> None:
    """Whoever wins: it is gone with that life, or was never recorded."""
    for number in range(3):
        began_at = deployment.clock()
        opening = [other.log.trees.open(a_chat(f"t{number}-{n}", at=began_at), SENT) for n in range(5)]
        await asyncio.gather(erase(deployment, process), *opening)
        assert deployment.places_with(USER) == []
