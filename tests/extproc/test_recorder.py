"""What becomes of a turn that cannot be written: it is counted, told without a word of it, and troubles no stream.

And of what must not be recorded, or not as it is: of a user who has opted out nothing, and no secret of a tool.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from claims import NOW
from prometheus_client import CollectorRegistry
from recorded import all_of
from structlog.testing import capture_logs
from turn_logs import START, Deployment, Process, a_turn, lease_at, sqlite_deployment, tell

from extproc import retrying_writes, turn_links
from extproc.edge_trust import EdgeTrust
from extproc.exchange import CloseTurn, LeaveOut, OpenTurn, TurnSeed
from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.recorder import CUT, STORED_CHARACTERS_MAX, Opening, TurnRecorder, without_secrets
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
HELLO = SentExchange("k0", (Message("user", "Hello"),), "Hi.")
ALL_WORDS = RecordingPolicy(str)


@pytest.fixture(autouse=True)
def _nobody_waits_for_an_unknown_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_links, "LOOP_PATIENCE_SECONDS", (0.0,))


@dataclass
class Record:
    """A turn log, and what recorders before it have counted."""

    process: Process
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))

    @asynccontextmanager
    async def recorder(self, policy: RecordingPolicy = ALL_WORDS) -> AsyncIterator[TurnRecorder]:
        parts = (self.process.log, self.metrics, lambda: NOW, error_boundary, policy, None)
        async with asyncio.timeout(30), TurnRecorder(*parts) as recorder:  # type: ignore[arg-type]
            yield recorder

    async def logged(self, redact: Callable[[str], str] = str) -> Sequence[Mapping[str, Any]]:
        """What is logged while a turn is opened and closed by a recorder that redacts like this."""
        with capture_logs() as logs:
            async with self.recorder(RecordingPolicy(redact)) as recorder:
                closing = CloseTurn("t1", TurnStatus.CLOSED, "Nice.", NOW, links=Links("ann", names=("resp_1",)))
                recorder.close(closing, after=begun(recorder, opening_after()))
        return logs

    async def turns(self) -> list[tuple[str, str, str]]:
        found = self.process.log.turns("ann", session_id="s1")
        return [(one.messages[0].content, one.answer, one.status) async for one in found]

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"memproxy_{name}_total", labels) or 0.0

    def waiting(self) -> float:
        return self.metrics.registry.get_sample_value("memproxy_turns_waiting") or 0.0

    def lost(self, reason: str = "failed") -> float:
        return self.count("turns_lost", reason=reason)


@pytest.fixture
async def record(tmp_path: Path) -> AsyncIterator[Record]:
    async with sqlite_deployment(tmp_path).start() as process:
        yield Record(process)


async def after_a_start(on: Deployment, policy: RecordingPolicy, *opened: OpenTurn) -> list[tuple[str, str, str]]:
    """The turns once one more process has opened these."""
    async with on.start() as process:
        record = Record(process)
        async with record.recorder(policy) as recorder:
            for opening in opened:
                recorder.open(opening)
        return await record.turns()


def refusing(word: str, error: Exception) -> Callable[[str], str]:
    def redact(text: str) -> str:
        if word in text:
            raise error
        return text

    return redact


def opening_after(*earlier: SentExchange, turn_id: str = "t1") -> OpenTurn:
    sent = SentConversation(("k1",), earlier=earlier, is_session_given=True)
    return OpenTurn(a_turn(turn_id, text=SAID, at=NOW), Links("ann"), sent)


def begun(recorder: TurnRecorder, opening: OpenTurn) -> Opening:
    found = recorder.open(opening)
    assert found is not None
    return found


@pytest.mark.parametrize("error", [IndexError(SAID), NotRecordable("IndexError"), ZeroDivisionError(SAID)])
async def test_what_cannot_be_redacted_is_a_lost_turn_told_without_its_words(record: Record, error: Exception) -> None:
    logs = await record.logged(refusing("door", error))
    assert record.lost() == 1.0
    assert await record.turns() == []
    assert [entry["event"] for entry in logs] == ["stream_failed"]
    assert SAID not in str(logs)


async def test_an_answer_that_cannot_be_redacted_is_left_out_and_the_users_words_are_kept(record: Record) -> None:
    logs = await record.logged(refusing("Nice", NotRecordable("IndexError")))
    assert record.lost() == 1.0
    assert await record.turns() == [(SAID, "", TurnStatus.CLOSED)]
    assert "Nice" not in str(logs)


@pytest.mark.parametrize(("fills_in", "has_recorded"), [(False, True), (True, False), (True, True)])
async def test_missed_turns_are_filled_in_only_where_set(tmp_path: Path, fills_in: bool, has_recorded: bool) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(str, fills_in)
    if has_recorded:
        await after_a_start(deployment, policy)
    deployment.clock.now += 10
    found = await after_a_start(deployment, policy, opening_after(HELLO))
    expected = [TurnStatus.FILLED_IN] if fills_in and has_recorded else []
    assert [status for *_, status in found] == [*expected, TurnStatus.OPENED]


async def test_turns_that_were_lost_show_as_a_gap(record: Record) -> None:
    """Also where the turn log was down only for a moment."""
    failures = [ValueError()]

    def redact(text: str) -> str:
        if failures:
            raise failures.pop()
        return text

    async with record.recorder(RecordingPolicy(redact)) as recorder:
        assert await begun(recorder, opening_after()) is None
        await recorder._beats.beat()  # as it does every few seconds
        recorder.open(opening_after(HELLO))
    assert [said for said, *_ in await record.turns()] == ["Hello", SAID]


async def test_an_earlier_turn_that_cannot_be_redacted_is_not_filled_in_and_the_new_one_is_kept(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(refusing("Hello", NotRecordable("IndexError")))
    await after_a_start(deployment, policy, opening_after(turn_id="t0"))
    found = await after_a_start(deployment, policy, opening_after(HELLO))
    assert [said for said, *_ in found] == [SAID, SAID]


async def test_what_must_not_be_recorded_is_known_by_what_remains_of_it_without_its_secrets(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    policy = RecordingPolicy(lambda text: text.replace("1234", "[redacted]"))
    private = (Message("user", "My number is 1234, keep it to yourself"),)
    async with deployment.start() as process, Record(process).recorder(policy) as recorder:
        recorder.leave_out(LeaveOut("ann", SentExchange("of another history", private, "")))
    found = await after_a_start(deployment, policy, opening_after(SentExchange("k0", private, "Sure.")))
    assert [said for said, *_ in found] == [SAID]


def held_back(monkeypatch: pytest.MonkeyPatch, *, size: int) -> asyncio.Event:
    """A turn log that takes no turn before the event is set, and room for so many bytes in front of it."""
    may_open, conversation_trees = asyncio.Event(), SqlConversationTrees.open

    async def wait_and_open(self: SqlConversationTrees, *turn: Any) -> str:
        await may_open.wait()
        return await conversation_trees(self, *turn)

    monkeypatch.setattr(SqlConversationTrees, "open", wait_and_open)
    monkeypatch.setattr(retrying_writes, "PENDING_BYTES_MAX", size)
    return may_open


async def test_texts_beyond_a_hanging_log_are_lost_and_counted(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose bytes are in the conversation that they continue."""
    may_open, answer = held_back(monkeypatch, size=30_000), "Nice. " * 2_000
    async with record.recorder() as recorder:
        long = replace(HELLO, answer="Hi. " * 5_000)
        opening = begun(recorder, opening_after(long))
        assert recorder.open(opening_after(long, turn_id="too much")) is None
        recorder.leave_out(LeaveOut("ann", SentExchange("k", (Message("user", "A" * 20_000),), "")))
        recorder.continue_turn(ContinueTurn(Links("ann", "resp_9"), TurnStatus.CLOSED, answer, NOW))
        assert record.lost("backlog") == 3.0
        recorder.close(CloseTurn("t1", TurnStatus.CLOSED, answer, NOW), after=opening)
        assert record.lost("backlog") == 4.0
        may_open.set()
        assert await opening is not None
    assert await record.turns() == [(SAID, "", TurnStatus.CLOSED)]


async def test_there_is_room_once_the_log_took_what_waited(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    held_back(monkeypatch, size=1_000).set()
    async with record.recorder() as recorder:
        for number in range(30):
            assert await begun(recorder, opening_after(turn_id=f"t{number}")) is not None
    assert record.lost("backlog") == 0.0


async def test_what_waits_for_a_log_is_counted_until_written(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    async with record.recorder() as recorder:
        with monkeypatch.context() as outage:
            outage.setattr(record.process.log._database, "_writer", None)
            openings = [begun(recorder, opening_after(turn_id=f"t{number}")) for number in range(3)]
            while record.waiting() < 3.0:
                await asyncio.sleep(0.001)
        assert None not in await asyncio.gather(*openings)
        assert (record.waiting(), record.lost("unavailable")) == (0.0, 0.0)


async def test_the_end_of_a_turn_does_not_depend_on_its_link(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    is_finished, finish = asyncio.Event(), SqlTurnLog.finish

    async def finish_and_tell(self: SqlTurnLog, turn_id: str, **how: Any) -> None:
        await finish(self, turn_id, **how)
        is_finished.set()

    async def keep(self: SqlResponseChains, *link: object, at: float) -> None:
        await is_finished.wait()
        raise Unavailable("turn log", "disk full")

    monkeypatch.setattr(SqlTurnLog, "finish", finish_and_tell)
    monkeypatch.setattr(SqlResponseChains, "keep", keep)
    assert [entry["event"] for entry in await record.logged()] == ["turn_log_down"]
    assert await record.turns() == [(SAID, "Nice.", TurnStatus.CLOSED)]


async def test_what_is_not_recorded_continues_the_session_and_the_notes_of_its_chain(record: Record) -> None:
    await record.logged()
    chains = record.process.log.chains
    await chains.keep("ann", ("resp_1",), ChainLink("s", "t", ("k1",)), at=NOW)
    links = Links("ann", "resp_1", ("k2",), ("resp_2",))
    async with record.recorder() as recorder:
        recorder.link_exchange(LinkExchange(links, "derived", True, NOW))
        recorder.link_exchange(LinkExchange(replace(links, names=("resp_3",)), "given", False, NOW))
        recorder.link_exchange(LinkExchange(Links("ann", "resp_9", (), ("resp_4",)), "derived", True, NOW))
    assert await chains.find("ann", "resp_2") == ChainLink("s", "", ("k1", "k2"))
    assert await chains.find("ann", "resp_3") == ChainLink("given", "", ("k1", "k2"))
    assert await chains.find("ann", "resp_4") == ChainLink("derived", "", ())
    async with record.recorder() as recorder:
        loop = Links("ann", "resp_2", (), ("resp_5",))
        recorder.continue_turn(ContinueTurn(loop, TurnStatus.CLOSED, "It rains.", NOW))
    assert await chains.find("ann", "resp_5") == ChainLink("s", "", ("k1", "k2"))
    assert await record.turns() == [(SAID, "Nice.", TurnStatus.CLOSED)]
    assert record.lost() == 0.0


async def test_the_answer_of_an_unknown_tool_loop_is_counted_and_no_turn_is(record: Record) -> None:
    await record.logged()
    with capture_logs() as logs:
        async with record.recorder() as recorder:
            for answer in ("It rains.", ""):
                recorder.continue_turn(ContinueTurn(Links("ann", "resp_9"), TurnStatus.CLOSED, answer, NOW))
    assert record.count("answers_without_turn") == 1.0
    assert record.lost() == 0.0
    assert await record.turns() == [(SAID, "Nice.", TurnStatus.CLOSED)]
    assert logs == []


# What must not be recorded


async def test_nothing_is_recorded_while_a_user_has_opted_out_and_nothing_is_filled_in_later(
    record: Record, tmp_path: Path
) -> None:
    """Not even when the client sends the conversation again."""
    opt_outs = record.process.opt_outs

    async def recorded(turn_id: str, *said: str) -> list[str]:
        messages: list[dict[str, str]] = []
        for text in said:
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
        body = json.dumps({"model": "m", "messages": messages[:-1], "memory_context": {"user_id": "ann"}}).encode()
        watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id))
        watch.on_request_headers([(":method", b"POST"), (":path", b"/v1/chat/completions")])
        watch.on_request_body(body, is_end=True, at=NOW)
        opening = watch.read_request()
        assert isinstance(opening, OpenTurn)
        async with record.recorder(RecordingPolicy(str, opt_outs=opt_outs)) as recorder:
            recorder.close(CloseTurn(turn_id, TurnStatus.CLOSED, "Noted.", NOW), after=begun(recorder, opening))
        return [turn.messages[0].content async for turn in record.process.log.turns("ann")]

    assert await recorded("t1", "I live in Ulm.") == ["I live in Ulm."]
    await opt_outs.set("ann", at=NOW)
    assert await recorded("t2", "I live in Ulm.", "I moved to Bonn.") == ["I live in Ulm."]
    await opt_outs.clear("ann")
    again = await recorded("t3", "I live in Ulm.", "I moved to Bonn.", "I like tea.")
    assert again == ["I live in Ulm.", "I like tea."]
    assert b"Bonn" not in b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert record.count("turns", status="closed") == 2.0
    assert (record.lost("failed"), record.lost("unavailable")) == (0.0, 0.0)


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
async def test_the_traffic_of_a_loop_is_recorded_with_its_turn(record: Record, status: TurnStatus) -> None:
    log = record.process.log
    await tell(log, "t1", text="Will it rain?", answer="")
    await log.chains.keep("ann", ("loop",), ChainLink("s1", "t1"), at=START)
    tools = (ToolMessage("weather", "{}", "c1"), ToolMessage("weather", f"rain {KEY}", "c1", is_result=True))
    ending = ContinueTurn(Links("ann", "loop"), status, "It rains", START + 3, tools=tools, asked_at=START + 2)
    async with record.recorder(RecordingPolicy(redact)) as recorder:
        recorder.continue_turn(ending)
        recorder.continue_turn(ending)  # the client tried again
        recorder.continue_turn(ContinueTurn(Links("bob", "loop"), status, "", START, tools=tools))
    found = await all_of(log.messages, MessageFilter("ann"))
    assert [m.source.type.value for m in found][:3] == ["user", "model", "tool"]
    assert [m.at for m in found][:3] == [START, START + 2, START + 2]
    assert len(found) == (4 if status is TurnStatus.CLOSED else 3)
    assert not any(KEY in message.content for message in found)
    assert await all_of(log.messages, MessageFilter("bob")) == []
    lease = await lease_at(log, START + 9)
    assert lease is not None
    assert [m.content for turn in lease.turns for m in turn.messages] == ["Will it rain?"]
