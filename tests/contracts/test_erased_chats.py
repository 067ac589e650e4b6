"""A chat that is open while its user is erased is no part of the user's next life."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from prometheus_client import CollectorRegistry
from turn_logs import START, Process, a_turn, sqlite_deployment

from extproc.exchange import CloseTurn, OpenTurn
from extproc.recorder import TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from extproc.turn_links import Links
from memory.model import SentConversation, Turn, TurnStatus
from memory.runtime.metrics import Metrics

USER = "ann-7f3a"
SENT = SentConversation(("k1",), is_session_given=True)


def asked(turn_id: str, *, at: float) -> Turn:
    return a_turn(turn_id, user=USER, at=at, text="My door is red")


async def erase(process: Process) -> None:
    async with process.ledger.write(USER) as held:
        await held.end_life()


def tables_with_user(folder: Path) -> list[str]:
    with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if USER in repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())]


async def test_a_turn_that_was_opened_while_its_user_was_erased_ends_with_that_life(tmp_path: Path) -> None:
    async with sqlite_deployment(tmp_path).start() as process:
        await process.log.trees.open(asked("t1", at=START), SENT)
        assert "turns" in tables_with_user(tmp_path)
        await erase(process)
        assert tables_with_user(tmp_path) == []
        await process.log.finish("t1", status=TurnStatus.CLOSED, answer="Nice.", answered_at=START)
        assert tables_with_user(tmp_path) == []


async def test_a_turn_that_began_before_the_erasure_is_not_recorded_after_it(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        began_at = deployment.clock()
        deployment.clock.now += 1
        await erase(process)
        deployment.clock.now += 1
        assert await process.log.trees.open(asked("t1", at=began_at), SENT) == ""
        assert tables_with_user(tmp_path) == []
        assert await process.log.trees.open(asked("t2", at=deployment.clock()), SENT) != ""
        assert [one.id async for one in process.log.turns(USER)] == ["t2"]


async def test_its_reply_leaves_no_link_and_is_no_loss(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    metrics = Metrics(CollectorRegistry())
    async with deployment.start() as process:
        one = asked("t1", at=deployment.clock())
        deployment.clock.now += 1
        await erase(process)
        deployment.clock.now += 1
        recorder = TurnRecorder(process.log, metrics, deployment.clock, contained, RecordingPolicy(str), None)  # type: ignore[arg-type]
        async with asyncio.timeout(10), recorder:
            opening = recorder.open(OpenTurn(one, Links(USER), SENT))
            assert opening is not None
            links = Links(USER, names=("resp_1",))
            closing_turn = CloseTurn(one.id, TurnStatus.CLOSED, "Nice.", deployment.clock(), links=links)
            recorder.close(closing_turn, after=opening)
        assert tables_with_user(tmp_path) == []
        lost = [sample.value for one in metrics.turns_lost.collect() for sample in one.samples]
        assert sum(value for value in lost if value < 1e6) == 0.0
