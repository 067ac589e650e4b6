"""Of a user who has opted out nothing is recorded: not now, and not when the client sends the conversation again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry
from turn_logs import START, Process, sqlite_deployment

from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.recorder import ObservedStream, TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from memory.runtime.metrics import Metrics

REPLY = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}]})


@asynccontextmanager
async def recording(process: Process, metrics: Metrics) -> AsyncIterator[TurnRecorder]:
    policy = RecordingPolicy(str, opt_outs=process.opt_outs)
    async with TurnRecorder(process.log, metrics, lambda: START, contained, policy, None) as recorder:  # type: ignore[arg-type]
        yield recorder


async def chat(recorder: TurnRecorder, turn_id: str, *said: str) -> None:
    """One exchange, with all earlier ones sent again."""
    messages: list[dict[str, str]] = []
    for text in said:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    body = json.dumps({"model": "m", "messages": messages[:-1], "memory_context": {"user_id": "ann"}}).encode()
    watch = Observation(turn_id=turn_id, mode=IdentityMode.DEVELOPMENT)
    stream = ObservedStream(recorder, watch)
    watch.on_request_headers([(":method", b"POST"), (":path", b"/v1/chat/completions")])
    await stream.take(lambda w: w.on_request_body(body, is_end=True, at=START), is_end=True)
    reply: Sequence[tuple[str, bytes]] = [(":status", b"200"), ("content-type", b"application/json")]
    await stream.take(
        partial(lambda w, headers: w.on_response_headers(headers, {}, at=START), headers=reply), is_end=False
    )
    await stream.take(lambda w: w.on_response_body(REPLY.encode(), is_end=True, at=START), is_end=True)
    stream.end()


async def said(process: Process) -> list[str]:
    return [turn.messages[0].content async for turn in process.log.turns("ann")]


async def test_nothing_is_recorded_while_a_user_has_opted_out_and_nothing_is_filled_in_later(tmp_path: Path) -> None:
    metrics = Metrics(CollectorRegistry())
    async with sqlite_deployment(tmp_path).start() as process:
        async with recording(process, metrics) as recorder:
            await chat(recorder, "t1", "I live in Ulm.")
        await process.opt_outs.set("ann", at=START)
        async with recording(process, metrics) as recorder:
            await chat(recorder, "t2", "I live in Ulm.", "I moved to Bonn.")
        assert await said(process) == ["I live in Ulm."]
        await process.opt_outs.clear("ann")
        async with recording(process, metrics) as recorder:
            await chat(recorder, "t3", "I live in Ulm.", "I moved to Bonn.", "I like tea.")
        assert await said(process) == ["I live in Ulm.", "I like tea."]
        stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"Bonn" not in stored
    assert metrics.registry.get_sample_value("memproxy_turns_total", {"status": "closed"}) == 2.0
    for reason in ("failed", "unavailable"):
        assert not metrics.registry.get_sample_value("memproxy_turns_lost_total", {"reason": reason})


async def test_an_exchange_that_was_never_opted_out_would_be_filled_in(tmp_path: Path) -> None:
    """The rule above holds because of the opt-out, and not because nothing is filled in at all."""
    async with sqlite_deployment(tmp_path).start() as process:
        async with recording(process, Metrics(CollectorRegistry())) as recorder:
            await chat(recorder, "t1", "I live in Ulm.")
            await chat(recorder, "t3", "I live in Ulm.", "I moved to Bonn.", "I like tea.")
        assert "I moved to Bonn." in await said(process)
