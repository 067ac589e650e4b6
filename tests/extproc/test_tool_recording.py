"""Tool traffic goes to the turn that started the loop, without secrets, bounded, and never to learning."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from recorded import all_of
from turn_logs import START, a_turn, lease_at, sqlite_deployment

from extproc.recorder import TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from extproc.tool_recording import CUT, STORED_CHARACTERS_MAX, without_secrets
from extproc.turn_links import ContinueTurn, Links
from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX
from memory.errors import NotRecordable
from memory.model import ChainLink, MessageFilter, ToolMessage, TurnStatus
from memory.runtime.metrics import Metrics
from memory.secrets.redaction import redact

KEY = "ghp_" + "a8Kd0QzLm3TnVx5Rb7WcYp2Hs9Ef4GjU6i1o"


async def test_secrets_are_removed_and_long_texts_are_cut() -> None:
    long = "word " * (CONTENT_CHARACTERS_MAX // 5)
    (one, two) = await without_secrets([ToolMessage("f", f"token {KEY}"), ToolMessage("f", long)], redact)
    assert KEY not in one.content
    assert two.content.endswith(CUT)
    assert len(two.content) <= STORED_CHARACTERS_MAX
    assert long.startswith(two.content.removesuffix(CUT))


@pytest.mark.parametrize("visible", range(10, 50, 7))
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
    def refusing(text: str) -> str:
        if "odd" in text:
            raise NotRecordable("ValueError")
        return text

    fine = ToolMessage("f", "fine")
    assert await without_secrets([ToolMessage("f", "odd"), fine], refusing) == (fine,)


@pytest.mark.parametrize("status", [TurnStatus.CLOSED, TurnStatus.FAILED, TurnStatus.ABORTED])
async def test_the_traffic_of_a_loop_is_recorded_with_its_turn(tmp_path: Path, status: TurnStatus) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        await process.log.open(a_turn("t1", text="Will it rain?"))
        await process.log.finish("t1", status=TurnStatus.CLOSED, answer="", answered_at=START + 1)
        await process.log.chains.keep("ann", ("loop",), ChainLink("s1", "t1"), at=START)
        metrics = Metrics(CollectorRegistry())
        recorder = TurnRecorder(process.log, metrics, deployment.clock, contained, RecordingPolicy(redact, True), None)  # type: ignore[arg-type]
        tools = (ToolMessage("weather", "{}", "c1"), ToolMessage("weather", f"rain {KEY}", "c1", is_result=True))
        ending = ContinueTurn(Links("ann", "loop"), status, "It rains", START + 3, tools=tools, asked_at=START + 2)
        async with asyncio.timeout(30), recorder:
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
