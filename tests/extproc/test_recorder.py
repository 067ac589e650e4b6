"""What becomes of a turn that cannot be written: it is counted, told without a word of it, and troubles no stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claims import NOW, turn
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from turn_logs import Process, sqlite_deployment

from extproc import pending_writes, recording_beats
from extproc.exchange import CloseTurn, LeaveOut, OpenTurn
from extproc.recorder import TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.adapters.sqlite.chains import SqliteResponseChains
from memory.adapters.sqlite.conversation_trees import SqliteConversationTrees
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.errors import NotRecordable, Unavailable
from memory.model import ChainLink, Message, SentConversation, SentExchange, TurnStatus
from memory.runtime.metrics import Metrics

SAID = "My door is red"
SCOPE = turn(SAID).scope


def lost(metrics: Metrics) -> float:
    return metrics.registry.get_sample_value("memproxy_turns_lost_total", {"reason": "failed"}) or 0.0


def refusing(word: str, error: Exception) -> object:
    def redact(text: str) -> str:
        if word in text:
            raise error
        return text

    return redact


@asynccontextmanager
async def recorded(
    tmp_path: Path, redact: object, answer: str = "Nice."
) -> AsyncIterator[tuple[Process, Metrics, list[dict[str, object]]]]:
    """A turn, opened and closed by a recorder that redacts like this."""
    metrics = Metrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(sqlite_deployment(tmp_path).start())
        with capture_logs() as logs:
            recorder = TurnRecorder(process.log, metrics, lambda: NOW, contained, RecordingPolicy(redact, True), None)  # type: ignore[arg-type]
            async with asyncio.timeout(30), recorder:
                one = replace(turn(SAID), messages=(Message("user", SAID),), answer="", status=TurnStatus.OPENED)
                opening = recorder.open(
                    OpenTurn(one, Links(one.scope.user_id), SentConversation(("k1",), is_session_given=True))
                )
                assert opening is not None
                closing = CloseTurn(one.id, status=TurnStatus.CLOSED, answer=answer, answered_at=NOW, receipt_id="")
                recorder.close(replace(closing, links=Links(one.scope.user_id, names=("resp_1",))), after=opening)
        yield process, metrics, logs


async def turns(process: Process) -> list[tuple[str, str, str]]:
    found = process.log.turns(SCOPE.user_id, session_id=SCOPE.session_id)
    return [(one.messages[0].content, one.answer, one.status) async for one in found]


async def test_a_message_that_cannot_be_redacted_is_a_lost_turn_and_is_told_without_its_words(tmp_path: Path) -> None:
    for error in (IndexError(SAID), NotRecordable("IndexError"), ZeroDivisionError(SAID)):
        async with recorded(tmp_path, refusing("door", error)) as (process, metrics, logs):
            assert lost(metrics) == 1.0
            assert await turns(process) == []
            assert [entry["event"] for entry in logs] == ["stream_failed"]
            assert SAID not in str(logs)


async def test_an_answer_that_cannot_be_redacted_is_left_out_and_the_users_words_are_kept(tmp_path: Path) -> None:
    redact = refusing("Nice", NotRecordable("IndexError"))
    async with recorded(tmp_path, redact) as (process, metrics, logs):
        assert lost(metrics) == 1.0
        assert await turns(process) == [(SAID, "", TurnStatus.CLOSED)]
        assert "Nice" not in str(logs)


@pytest.mark.parametrize(("fills_in", "has_recorded"), [(False, True), (True, False), (True, True)])
async def test_missed_turns_are_recorded_only_where_the_setting_says_so_and_something_was_missed(
    tmp_path: Path, fills_in: bool, has_recorded: bool
) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(str, fills_in)
    if has_recorded:
        async with deployment.start() as process, recorder_of(process, policy):
            pass
    deployment.clock.now += 10
    missed = SentExchange("k0", (Message("user", "Hello"),), "Hi.")
    async with deployment.start() as process:
        async with asyncio.timeout(30), recorder_of(process, policy) as recorder:
            recorder.open(opening_after(missed))
        statuses = [status for *_, status in await turns(process)]
    assert statuses == [*([TurnStatus.FILLED_IN] if fills_in and has_recorded else []), TurnStatus.OPENED]


def recorder_of(process: Process, policy: RecordingPolicy) -> TurnRecorder:
    return TurnRecorder(process.log, Metrics(CollectorRegistry()), lambda: NOW, contained, policy, None)  # type: ignore[arg-type]


def opening_after(*earlier: SentExchange) -> OpenTurn:
    one = replace(turn(SAID), messages=(Message("user", SAID),), answer="", status=TurnStatus.OPENED)
    return OpenTurn(one, Links(one.scope.user_id), SentConversation(("k1",), earlier=earlier, is_session_given=True))


async def test_turns_that_were_lost_show_as_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the turn log was down only for a moment."""
    monkeypatch.setattr(recording_beats, "BEAT_SECONDS", 0.01)
    failures = [ValueError()]

    def redact(text: str) -> str:
        if failures:
            raise failures.pop()
        return text

    async with sqlite_deployment(tmp_path).start() as process:
        policy = RecordingPolicy(redact, True)
        async with asyncio.timeout(30), recorder_of(process, policy) as recorder:
            begun = recorder.open(opening_after())
            assert begun is not None
            assert await begun is None
            await asyncio.sleep(0.1)
            recorder.open(opening_after(SentExchange("k0", (Message("user", "Hello"),), "Hi.")))
        assert [said for said, *_ in await turns(process)] == ["Hello", SAID]


async def test_an_earlier_turn_that_cannot_be_redacted_is_not_filled_in_and_the_new_one_is_kept(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(refusing("Hello", NotRecordable("IndexError")), True)  # type: ignore[arg-type]
    for said in ((), (SentExchange("k0", (Message("user", "Hello"),), "Hi."),)):
        async with deployment.start() as process:
            async with asyncio.timeout(30), recorder_of(process, policy) as recorder:
                recorder.open(replace(opening_after(*said), turn=replace(opening_after().turn, id=f"t{len(said)}")))
            recorded = [text for text, *_ in await turns(process)]
    assert recorded == [SAID, SAID]


async def test_what_must_not_be_recorded_is_known_by_what_remains_of_it_without_its_secrets(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(lambda text: text.replace("1234", "[redacted]"), True)
    private = (Message("user", "My number is 1234, keep it to yourself"),)
    async with deployment.start() as process, asyncio.timeout(30), recorder_of(process, policy) as recorder:
        recorder.leave_out(LeaveOut(SCOPE.user_id, SentExchange("of another history", private, "")))
    async with deployment.start() as process:
        async with asyncio.timeout(30), recorder_of(process, policy) as recorder:
            recorder.open(opening_after(SentExchange("k0", private, "Sure.")))
        assert [said for said, *_ in await turns(process)] == [SAID]


def held_back(monkeypatch: pytest.MonkeyPatch, *, size: int) -> asyncio.Event:
    """A turn log that takes no turn before the event is set, and room for so many bytes in front of it."""
    may_open, conversation_trees = asyncio.Event(), SqliteConversationTrees.open

    async def wait_and_open(self: SqliteConversationTrees, *turn: Any) -> str:
        await may_open.wait()
        return await conversation_trees(self, *turn)

    monkeypatch.setattr(SqliteConversationTrees, "open", wait_and_open)
    monkeypatch.setattr(pending_writes, "PENDING_BYTES_MAX", size)
    return may_open


def backlog(recorder: TurnRecorder) -> float:
    return recorder._metrics.registry.get_sample_value("memproxy_turns_lost_total", {"reason": "backlog"}) or 0.0


async def test_turns_whose_texts_are_too_many_for_a_hanging_log_are_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those whose bytes are in the conversation that they continue."""
    may_open, answer = held_back(monkeypatch, size=30_000), "Nice. " * 2_000
    async with sqlite_deployment(tmp_path).start() as process:
        async with asyncio.timeout(30), recorder_of(process, RecordingPolicy(str)) as recorder:
            sent = opening_after(SentExchange("k0", (Message("user", "Hello"),), "Hi. " * 5_000))
            begun = recorder.open(sent)
            assert begun is not None
            assert recorder.open(replace(sent, turn=replace(sent.turn, id="too much"))) is None
            recorder.leave_out(LeaveOut(SCOPE.user_id, SentExchange("k", (Message("user", "A" * 20_000),), "")))
            continuing = ContinueTurn(Links(SCOPE.user_id, "resp_9"), TurnStatus.CLOSED, answer, NOW)
            recorder.continue_turn(continuing)
            assert backlog(recorder) == 3.0
            recorder.close(CloseTurn(sent.turn.id, TurnStatus.CLOSED, answer, NOW), after=begun)
            assert backlog(recorder) == 4.0
            may_open.set()
            assert await begun is not None
        assert await turns(process) == [(SAID, "", TurnStatus.CLOSED)]


async def test_there_is_room_again_once_the_log_has_taken_what_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open = held_back(monkeypatch, size=1_000)
    may_open.set()
    async with sqlite_deployment(tmp_path).start() as process:
        async with asyncio.timeout(30), recorder_of(process, RecordingPolicy(str)) as recorder:
            for number in range(30):
                one = opening_after()
                begun = recorder.open(replace(one, turn=replace(one.turn, id=f"t{number}")))
                assert begun is not None
                assert await begun is not None
        assert backlog(recorder) == 0.0


async def test_a_turn_that_is_written_is_not_lost(tmp_path: Path) -> None:
    async with recorded(tmp_path, str) as (process, metrics, _):
        assert lost(metrics) == 0.0
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]


async def test_the_end_of_a_turn_neither_waits_for_its_link_nor_is_lost_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_finished, finish = asyncio.Event(), SqliteTurnLog.finish

    async def finish_and_tell(self: SqliteTurnLog, turn_id: str, **how: Any) -> None:
        await finish(self, turn_id, **how)
        is_finished.set()

    async def keep(self: SqliteResponseChains, *link: object, at: float) -> None:
        await is_finished.wait()
        raise Unavailable("turn log", "disk full")

    monkeypatch.setattr(SqliteTurnLog, "finish", finish_and_tell)
    monkeypatch.setattr(SqliteResponseChains, "keep", keep)
    async with recorded(tmp_path, str) as (process, _, logs):
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert [entry["event"] for entry in logs] == ["turn_log_down"]


async def test_what_is_not_recorded_continues_the_session_and_the_notes_of_its_chain(tmp_path: Path) -> None:
    async with recorded(tmp_path, str) as (process, metrics, _):
        user, chains = SCOPE.user_id, process.log.chains
        await chains.keep(user, ("resp_1",), ChainLink("s", "t", ("k1",)), at=NOW)
        recorder = TurnRecorder(process.log, metrics, lambda: NOW, contained, RecordingPolicy(str, True), None)  # type: ignore[arg-type]
        links = Links(user, "resp_1", ("k2",), ("resp_2",))
        async with asyncio.timeout(30), recorder:
            recorder.link_exchange(LinkExchange(links, "derived", True, NOW))
            recorder.link_exchange(LinkExchange(replace(links, names=("resp_3",)), "given", False, NOW))
            recorder.link_exchange(LinkExchange(Links(user, "resp_9", (), ("resp_4",)), "derived", True, NOW))
        assert await chains.find(user, "resp_2") == ChainLink("s", "", ("k1", "k2"))
        assert await chains.find(user, "resp_3") == ChainLink("given", "", ("k1", "k2"))
        assert await chains.find(user, "resp_4") == ChainLink("derived", "", ())
        recorder = TurnRecorder(process.log, metrics, lambda: NOW, contained, RecordingPolicy(str, True), None)  # type: ignore[arg-type]
        async with asyncio.timeout(30), recorder:
            loop = Links(user, "resp_2", (), ("resp_5",))
            recorder.continue_turn(ContinueTurn(loop, TurnStatus.CLOSED, "It rains.", NOW))
        assert await chains.find(user, "resp_5") == ChainLink("s", "", ("k1", "k2"))
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert lost(metrics) == 0.0


async def test_the_answer_of_an_unknown_tool_loop_is_counted_and_no_turn_is(tmp_path: Path) -> None:
    async with recorded(tmp_path, str) as (process, metrics, logs):
        recorder = TurnRecorder(process.log, metrics, lambda: NOW, contained, RecordingPolicy(str, True), None)  # type: ignore[arg-type]
        async with asyncio.timeout(30), recorder:
            for answer in ("It rains.", ""):
                recorder.continue_turn(ContinueTurn(Links(SCOPE.user_id, "resp_9"), TurnStatus.CLOSED, answer, NOW))
        assert metrics.registry.get_sample_value("memproxy_answers_without_turn_total") == 1.0
        assert lost(metrics) == 0.0
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert logs == []
