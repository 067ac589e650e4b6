"""A chat that is open while its user is erased is no part of the user's next life."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process, a_turn

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


async def test_a_turn_that_was_opened_while_its_user_was_erased_ends_with_that_life(deployment: Deployment) -> None:
    async with deployment.start() as process:
        await process.log.trees.open(asked("t1", at=START), SENT)
        assert deployment.places_with(USER) != []
        await erase(process)
        assert deployment.places_with(USER) == []
        await process.log.finish("t1", status=TurnStatus.CLOSED, answer="Nice.", answered_at=START)
        assert deployment.places_with(USER) == []


async def test_a_turn_that_began_before_the_erasure_is_not_recorded_after_it(deployment: Deployment) -> None:
    async with deployment.start() as process:
        began_at = deployment.clock()
        deployment.clock.now += 1
        await erase(process)
        deployment.clock.now += 1
        assert await process.log.trees.open(asked("t1", at=began_at), SENT) == ""
        assert deployment.places_with(USER) == []
        assert await process.log.trees.open(asked("t2", at=deployment.clock()), SENT) != ""
        assert [one.id async for one in process.log.turns(USER)] == ["t2"]


async def test_its_reply_leaves_no_link_and_is_no_loss(deployment: Deployment) -> None:
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
        assert deployment.places_with(USER) == []
        lost = [sample.value for one in metrics.turns_lost.collect() for sample in one.samples]
        assert sum(value for value in lost if value < 1e6) == 0.0


async def test_a_turn_that_is_being_opened_while_its_user_is_erased_is_not_recorded(deployment: Deployment) -> None:
    """Whoever wins: it is gone with that life, or was never recorded."""
    async with deployment.start() as process, deployment.start() as other:
        for number in range(5):
            began_at = deployment.clock()
            deployment.clock.now += 1
            opening = [other.log.trees.open(asked(f"t{number}-{n}", at=began_at), SENT) for n in range(5)]
            await asyncio.gather(erase(process), *opening)
            assert [one.id async for one in process.log.turns(USER)] == []
            assert deployment.places_with(USER) == []
