"""What becomes of a turn that cannot be written: it is counted, told without a word of it, and troubles no stream.

And of what must not be recorded, or not as it is: of a user who has opted out nothing, and no secret of a tool.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claims import NOW, turn
from prometheus_client import CollectorRegistry
from recorded import all_of
from structlog.testing import capture_logs
from turn_logs import START, Process, a_turn, lease_at, sqlite_deployment

from extproc import retrying_writes, turn_links
from extproc.edge_trust import EdgeTrust
from extproc.exchange import CloseTurn, LeaveOut, OpenTurn, TurnSeed
from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.observed_stream import ObservedStream
from extproc.recorder import CUT, STORED_CHARACTERS_MAX, TurnRecorder, without_secrets
from extproc.resent_history import RecordingPolicy
from extproc.server import error_boundary
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.adapters.sql.conversation_trees import SqlConversationTrees
from memory.adapters.sql.requests_by_name import SqlResponseChains
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX
from memory.errors import NotRecordable, Unavailable
from memory.model import ChainLink, Message, MessageFilter, SentConversation, SentExchange, ToolMessage, TurnStatus
from memory.runtime.metrics import Metrics
from memory.secrets.redaction import redact

SAID = "My door is red"
SCOPE = turn(SAID).scope


@pytest.fixture(autouse=True)
def _nobody_waits_for_an_unknown_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_links, "LOOP_PATIENCE_SECONDS", (0.0,))


def recorder_of(
    process: Process, policy: RecordingPolicy | None = None, metrics: Metrics | None = None
) -> TurnRecorder:
    """By default it keeps all words, and records what was missed."""
    policy, metrics = policy or RecordingPolicy(str, True), metrics or Metrics(CollectorRegistry())
    return TurnRecorder(process.log, metrics, lambda: NOW, error_boundary, policy, None)  # type: ignore[arg-type]


def count(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"memproxy_{name}_total", labels) or 0.0


def lost(metrics: Metrics) -> float:
    return count(metrics, "turns_lost", reason="failed")


def refusing(word: str, error: Exception) -> Callable[[str], str]:
    def redact(text: str) -> str:
        if word in text:
            raise error
        return text

    return redact


@asynccontextmanager
async def recorded(
    tmp_path: Path, redact: Callable[[str], str]
) -> AsyncIterator[tuple[Process, Metrics, list[dict[str, object]]]]:
    """A turn, opened and closed by a recorder that redacts like this."""
    metrics = Metrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(sqlite_deployment(tmp_path).start())
        with capture_logs() as logs:
            async with asyncio.timeout(30), recorder_of(process, RecordingPolicy(redact, True), metrics) as recorder:
                one = replace(turn(SAID), messages=(Message("user", SAID),), answer="", status=TurnStatus.OPENED)
                opening = recorder.open(
                    OpenTurn(one, Links(one.scope.user_id), SentConversation(("k1",), is_session_given=True))
                )
                assert opening is not None
                closing = CloseTurn(one.id, status=TurnStatus.CLOSED, answer="Nice.", answered_at=NOW, receipt_id="")
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


def opening_after(*earlier: SentExchange) -> OpenTurn:
    one = replace(turn(SAID), messages=(Message("user", SAID),), answer="", status=TurnStatus.OPENED)
    return OpenTurn(one, Links(one.scope.user_id), SentConversation(("k1",), earlier=earlier, is_session_given=True))


async def test_turns_that_were_lost_show_as_a_gap(tmp_path: Path) -> None:
    """Also where the turn log was down only for a moment."""
    failures = [ValueError()]

    def redact(text: str) -> str:
        if failures:
            raise failures.pop()
        return text

    async with sqlite_deployment(tmp_path).start() as process:
        async with asyncio.timeout(30), recorder_of(process, RecordingPolicy(redact, True)) as recorder:
            begun = recorder.open(opening_after())
            assert begun is not None
            assert await begun is None
            await recorder._beats.beat()  # as it does every few seconds
            recorder.open(opening_after(SentExchange("k0", (Message("user", "Hello"),), "Hi.")))
        assert [said for said, *_ in await turns(process)] == ["Hello", SAID]


async def test_an_earlier_turn_that_cannot_be_redacted_is_not_filled_in_and_the_new_one_is_kept(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(refusing("Hello", NotRecordable("IndexError")), True)
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
    may_open, conversation_trees = asyncio.Event(), SqlConversationTrees.open

    async def wait_and_open(self: SqlConversationTrees, *turn: Any) -> str:
        await may_open.wait()
        return await conversation_trees(self, *turn)

    monkeypatch.setattr(SqlConversationTrees, "open", wait_and_open)
    monkeypatch.setattr(retrying_writes, "PENDING_BYTES_MAX", size)
    return may_open


async def test_turns_whose_texts_are_too_many_for_a_hanging_log_are_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those whose bytes are in the conversation that they continue."""
    may_open, answer, metrics = held_back(monkeypatch, size=30_000), "Nice. " * 2_000, Metrics(CollectorRegistry())
    async with sqlite_deployment(tmp_path).start() as process:
        async with asyncio.timeout(30), recorder_of(process, metrics=metrics) as recorder:
            sent = opening_after(SentExchange("k0", (Message("user", "Hello"),), "Hi. " * 5_000))
            begun = recorder.open(sent)
            assert begun is not None
            assert recorder.open(replace(sent, turn=replace(sent.turn, id="too much"))) is None
            recorder.leave_out(LeaveOut(SCOPE.user_id, SentExchange("k", (Message("user", "A" * 20_000),), "")))
            continuing = ContinueTurn(Links(SCOPE.user_id, "resp_9"), TurnStatus.CLOSED, answer, NOW)
            recorder.continue_turn(continuing)
            assert count(metrics, "turns_lost", reason="backlog") == 3.0
            recorder.close(CloseTurn(sent.turn.id, TurnStatus.CLOSED, answer, NOW), after=begun)
            assert count(metrics, "turns_lost", reason="backlog") == 4.0
            may_open.set()
            assert await begun is not None
        assert await turns(process) == [(SAID, "", TurnStatus.CLOSED)]


async def test_there_is_room_again_once_the_log_has_taken_what_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_back(monkeypatch, size=1_000).set()
    metrics = Metrics(CollectorRegistry())
    async with sqlite_deployment(tmp_path).start() as process:
        async with asyncio.timeout(30), recorder_of(process, metrics=metrics) as recorder:
            for number in range(30):
                one = opening_after()
                begun = recorder.open(replace(one, turn=replace(one.turn, id=f"t{number}")))
                assert begun is not None
                assert await begun is not None
        assert count(metrics, "turns_lost", reason="backlog") == 0.0


async def test_the_end_of_a_turn_neither_waits_for_its_link_nor_is_lost_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_finished, finish = asyncio.Event(), SqlTurnLog.finish

    async def finish_and_tell(self: SqlTurnLog, turn_id: str, **how: Any) -> None:
        await finish(self, turn_id, **how)
        is_finished.set()

    async def keep(self: SqlResponseChains, *link: object, at: float) -> None:
        await is_finished.wait()
        raise Unavailable("turn log", "disk full")

    monkeypatch.setattr(SqlTurnLog, "finish", finish_and_tell)
    monkeypatch.setattr(SqlResponseChains, "keep", keep)
    async with recorded(tmp_path, str) as (process, _, logs):
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert [entry["event"] for entry in logs] == ["turn_log_down"]


async def test_what_is_not_recorded_continues_the_session_and_the_notes_of_its_chain(tmp_path: Path) -> None:
    async with recorded(tmp_path, str) as (process, metrics, _):
        user, chains = SCOPE.user_id, process.log.chains
        await chains.keep(user, ("resp_1",), ChainLink("s", "t", ("k1",)), at=NOW)
        links = Links(user, "resp_1", ("k2",), ("resp_2",))
        async with asyncio.timeout(30), recorder_of(process, metrics=metrics) as recorder:
            recorder.link_exchange(LinkExchange(links, "derived", True, NOW))
            recorder.link_exchange(LinkExchange(replace(links, names=("resp_3",)), "given", False, NOW))
            recorder.link_exchange(LinkExchange(Links(user, "resp_9", (), ("resp_4",)), "derived", True, NOW))
        assert await chains.find(user, "resp_2") == ChainLink("s", "", ("k1", "k2"))
        assert await chains.find(user, "resp_3") == ChainLink("given", "", ("k1", "k2"))
        assert await chains.find(user, "resp_4") == ChainLink("derived", "", ())
        async with asyncio.timeout(30), recorder_of(process, metrics=metrics) as recorder:
            loop = Links(user, "resp_2", (), ("resp_5",))
            recorder.continue_turn(ContinueTurn(loop, TurnStatus.CLOSED, "It rains.", NOW))
        assert await chains.find(user, "resp_5") == ChainLink("s", "", ("k1", "k2"))
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert lost(metrics) == 0.0


async def test_the_answer_of_an_unknown_tool_loop_is_counted_and_no_turn_is(tmp_path: Path) -> None:
    async with recorded(tmp_path, str) as (process, metrics, logs):
        async with asyncio.timeout(30), recorder_of(process, metrics=metrics) as recorder:
            for answer in ("It rains.", ""):
                recorder.continue_turn(ContinueTurn(Links(SCOPE.user_id, "resp_9"), TurnStatus.CLOSED, answer, NOW))
        assert count(metrics, "answers_without_turn") == 1.0
        assert lost(metrics) == 0.0
        assert await turns(process) == [(SAID, "Nice.", TurnStatus.CLOSED)]
        assert logs == []


# What must not be recorded


async def chat(recorder: TurnRecorder, turn_id: str, *said: str) -> None:
    """One exchange, with all earlier ones sent again."""
    messages: list[dict[str, str]] = []
    for text in said:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    body = json.dumps({"model": "m", "messages": messages[:-1], "memory_context": {"user_id": "ann"}}).encode()
    watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id))
    stream = ObservedStream(recorder, watch)
    watch.on_request_headers([(":method", b"POST"), (":path", b"/v1/chat/completions")])
    await stream.take(lambda w: w.on_request_body(body, is_end=True, at=NOW), ends_reply=False)
    await stream.begin_reply({})
    await stream.take(lambda w: w.on_response_headers([(":status", b"200")], {}, at=NOW), ends_reply=False)
    reply = json.dumps({"choices": [{"message": {"content": "Noted."}, "finish_reason": "stop"}]}).encode()
    await stream.take(lambda w: w.on_response_body(reply, is_end=True, at=NOW), ends_reply=True)
    stream.end()


async def test_nothing_is_recorded_while_a_user_has_opted_out_and_nothing_is_filled_in_later(tmp_path: Path) -> None:
    """Not even when the client sends the conversation again."""
    metrics = Metrics(CollectorRegistry())

    async def record(process: Process, turn_id: str, *said: str) -> list[str]:
        policy = RecordingPolicy(str, opt_outs=process.opt_outs)
        async with recorder_of(process, policy, metrics) as recorder:
            await chat(recorder, turn_id, *said)
        return [turn.messages[0].content async for turn in process.log.turns("ann")]

    async with sqlite_deployment(tmp_path).start() as process:
        assert await record(process, "t1", "I live in Ulm.") == ["I live in Ulm."]
        await process.opt_outs.set("ann", at=NOW)
        assert await record(process, "t2", "I live in Ulm.", "I moved to Bonn.") == ["I live in Ulm."]
        await process.opt_outs.clear("ann")
        again = await record(process, "t3", "I live in Ulm.", "I moved to Bonn.", "I like tea.")
        assert again == ["I live in Ulm.", "I like tea."]
        stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"Bonn" not in stored
    assert count(metrics, "turns", status="closed") == 2.0
    for reason in ("failed", "unavailable"):
        assert not count(metrics, "turns_lost", reason=reason)


# Tool traffic goes to the turn that started the loop, without secrets, bounded, and never to learning

KEY = "ghp_" + "a8Kd0QzLm3TnVx5Rb7WcYp2Hs9Ef4GjU6i1o"


async def test_secrets_are_removed_and_long_texts_are_cut() -> None:
    long = "word " * (CONTENT_CHARACTERS_MAX // 5)
    (one, two) = await without_secrets([ToolMessage("f", f"token {KEY}"), ToolMessage("f", long)], redact)
    assert KEY not in one.content
    assert two.content.endswith(CUT)
    assert len(two.content) <= STORED_CHARACTERS_MAX
    assert long.startswith(two.content.removesuffix(CUT))


@pytest.mark.parametrize("visible", [10, 24, 38])
async def test_no_part_of_a_secret_is_stored_where_a_text_was_cut(visible: int) -> None:
    """The text ends within the secret, too early to recognise it."""
    text = "x " * CONTENT_CHARACTERS_MAX
    cut = text[: CONTENT_CHARACTERS_MAX - visible] + KEY[:visible]
    (stored,) = await without_secrets([ToolMessage("f", cut)], redact)
    assert KEY[:10] not in stored.content
    begun = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * CONTENT_CHARACTERS_MAX
    (stored,) = await without_secrets([ToolMessage("f", f"my {begun}"[:CONTENT_CHARACTERS_MAX])], redact)
    assert "MIIEow" not in stored.content


async def test_what_cannot_be_looked_through_is_left_out() -> None:
    fine = ToolMessage("f", "fine")
    redact_all_but_odd = refusing("odd", NotRecordable("ValueError"))
    assert await without_secrets([ToolMessage("f", "odd"), fine], redact_all_but_odd) == (fine,)


@pytest.mark.parametrize("status", [TurnStatus.CLOSED, TurnStatus.FAILED])
async def test_the_traffic_of_a_loop_is_recorded_with_its_turn(tmp_path: Path, status: TurnStatus) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        await process.log.open(a_turn("t1", text="Will it rain?"))
        await process.log.finish("t1", status=TurnStatus.CLOSED, answer="", answered_at=START + 1)
        await process.log.chains.keep("ann", ("loop",), ChainLink("s1", "t1"), at=START)
        tools = (ToolMessage("weather", "{}", "c1"), ToolMessage("weather", f"rain {KEY}", "c1", is_result=True))
        ending = ContinueTurn(Links("ann", "loop"), status, "It rains", START + 3, tools=tools, asked_at=START + 2)
        async with asyncio.timeout(30), recorder_of(process, RecordingPolicy(redact, True)) as recorder:
            recorder.continue_turn(ending)
            recorder.continue_turn(ending)  # the client tried again
            recorder.continue_turn(ContinueTurn(Links("bob", "loop"), status, "", START, tools=tools))
        found = await all_of(process.log.messages, MessageFilter("ann"))
        assert [m.source.type.value for m in found][:3] == ["user", "model", "tool"]
        assert [m.at for m in found][:3] == [START, START + 2, START + 2]
        assert len(found) == (4 if status is TurnStatus.CLOSED else 3)
        assert not any(KEY in message.content for message in found)
        assert await all_of(process.log.messages, MessageFilter("bob")) == []
        lease = await lease_at(process.log, START + 9)
        assert lease is not None
        assert [m.content for turn in lease.turns for m in turn.messages] == ["Will it rain?"]
