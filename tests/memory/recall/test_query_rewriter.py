"""A question rewritten by a model beside the plain search: used if it comes in time, and never waited for past it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from recall_rig import KAYAK, SETTINGS, Rig, pass_time, request_with, rigged, until

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable, Unusable
from memory.model import Message, RecallStatus, RequestOptions, Scope
from memory.ports.models import Completion
from memory.recall import search_flow
from memory.recall.pipeline import RecallOutcome
from memory.recall.query_rewriter import FAILURES_MAX, IN_FLIGHT_MAX, REST_SECONDS, Rewriter, RewriteSettings

REWRITTEN = "Where is my kayak stored?"
# The subject stands further back than the plain query looks.
VAGUE = (
    *("My kayak needs paint.", "Which colour?", "Green is nice on summer evenings.", "Lovely."),
    *("Let us speak of bread recipes instead.", "Rye?", "Rye bread with caraway seeds.", "Good.", "Where is mine?"),
)
# Here it stands in the message before, so the plain query finds it.
NEAR = ("I want to paint my kayak.", "Which colour?", "Where is it stored?")


@dataclass
class ScriptedModel:
    """`memory.ports.ChatModel` that says what a test decides: `error`, or `answer` once it does not hang any more."""

    answer: str = json.dumps({"query": REWRITTEN})
    error: Unavailable | None = None
    may_answer: asyncio.Event | None = None
    asked: list[Sequence[Message]] = field(default_factory=list)
    hung_up: int = 0

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append(messages)
        if self.error is not None:
            raise self.error
        if self.may_answer is not None:
            try:
                await self.may_answer.wait()
            except asyncio.CancelledError:
                self.hung_up += 1
                raise
        return Completion(self.answer)


@dataclass
class Chat:
    rig: Rig
    model: ScriptedModel

    async def ask(self, *said: str, **config: object) -> RecallOutcome:
        return await self.rig.recall.recall(Scope("u"), chat_request(*said, **config))

    async def signals(self, outcome: RecallOutcome) -> Mapping[str, Any]:
        return (await self.rig.receipt(outcome)).signals

    async def found(self, query: str, history: Sequence[Message] = ()) -> list[str]:
        """As the API searches."""
        options = RequestOptions()
        candidates = await self.rig.recall.search(Scope("u"), query=query, history=history, options=options)
        return [candidate.memory.content for candidate in candidates]


def chat_request(*said: str, **config: object) -> ChatRequest:
    """User and assistant by turns, the user last. `config`: its `memory_config`."""
    roles = ("user", "assistant") * len(said)
    messages = [{"role": roles[len(said) - 1 - place], "content": text} for place, text in enumerate(said)]
    return request_with(messages, **config)


@asynccontextmanager
async def chatting(folder: Path, settings: RewriteSettings | None = None) -> AsyncIterator[Chat]:
    """With a model only where there are settings for it."""
    model = ScriptedModel()
    async with rigged(folder, rewriter=settings and Rewriter(model, settings)) as rig:
        yield Chat(rig, model)


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    async with chatting(tmp_path, RewriteSettings(seconds_max=300.0)) as opened:
        yield opened


def is_found(outcome: RecallOutcome) -> bool:
    return any(KAYAK in note.text for note in outcome.notes)


async def test_a_rewrite_in_time_finds_what_the_vague_question_does_not(chat: Chat, tmp_path: Path) -> None:
    outcome = await chat.ask(*VAGUE)
    assert is_found(outcome)
    assert len(chat.model.asked) == 1
    receipt = await chat.rig.receipt(outcome)
    assert receipt.query.endswith("Where is mine?")
    assert (receipt.signals["rewrite"], receipt.signals["rewritten"]) == ("used", REWRITTEN)
    assert {"rewrite", "search_again"} <= set(receipt.timings_ms)
    signals = await chat.signals(await chat.ask(*VAGUE, auto_store=False))
    assert signals["rewrite"] == "used"
    assert signals.keys().isdisjoint({"rewritten", "hypothesis"})
    (tmp_path / "plain").mkdir()
    async with chatting(tmp_path / "plain") as plain:
        outcome = await plain.ask(*VAGUE)
        assert not is_found(outcome)
        assert (plain.model.asked, plain.rig.embedder.calls) == ([], 1)
        assert "rewrite" not in await plain.signals(outcome)


async def test_the_request_does_not_wait_for_its_receipt(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(chat.rig.receipts, "keep", kept.append)
    outcome = await chat.ask(*VAGUE)
    assert outcome.receipt_id not in [receipt.id for receipt in kept]
    await until(lambda: outcome.receipt_id in [receipt.id for receipt in kept])


async def test_with_hyde_the_expected_memory_is_searched_for_too(tmp_path: Path) -> None:
    async with chatting(tmp_path, RewriteSettings(hyde=True)) as chat:
        chat.model.answer = json.dumps({"query": "Where is my kayak?", "memory": "My kayak is stored somewhere."})
        assert is_found(await chat.ask(*VAGUE))
        assert chat.rig.embedder.texts[-1] == "Where is my kayak? My kayak is stored somewhere."


@pytest.mark.parametrize(
    ("said", "late", "status"),
    [
        (NEAR, "model", RecallStatus.USED),
        (NEAR, "embedding of its answer", RecallStatus.USED),
        (VAGUE, "embedding of its answer", RecallStatus.EMPTY),
    ],
)
async def test_a_late_rewrite_is_ignored_and_the_request_leaves_on_time_with_what_was_found(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, said: tuple[str, ...], late: str, status: RecallStatus
) -> None:
    searching, has_found = chat.rig.recall._searching, asyncio.Event()
    search_again = searching._search_rewritten

    async def watched(*given: Any) -> object:
        has_found.set()
        return await search_again(*given)

    monkeypatch.setattr(searching, "_search_rewritten", watched)
    if late == "model":
        chat.model.may_answer = asyncio.Event()
    else:
        chat.rig.embedder.hangs_on = lambda text: text == REWRITTEN
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(chat.ask(*said))
        await until(lambda: has_found.is_set() and (late == "model" or chat.rig.embedder.calls == 2))
        pass_time(SETTINGS.deadline_seconds)
    outcome = asking.result()
    assert (outcome.status, is_found(outcome)) == (status, status is RecallStatus.USED)
    receipt = await chat.rig.receipt(outcome)
    assert (receipt.status, receipt.signals["rewrite"]) == (status, "late")
    assert chat.rig.counted("memproxy_recall_late_total") == 0
    assert chat.model.hung_up == (late == "model"), "it is told that nobody waits any more"


async def test_a_rewrite_whose_embedding_fails_is_unused(chat: Chat) -> None:
    def fails_on_it(text: str) -> bool:
        if text == REWRITTEN:
            raise Unavailable("embedder", "it fails for this one")
        return False

    chat.rig.embedder.hangs_on = fails_on_it
    outcome = await chat.ask(*NEAR)
    assert is_found(outcome)
    assert (await chat.signals(outcome))["rewrite"] == "unused"


async def test_a_deadline_that_leaves_a_model_no_time_asks_none(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_flow, "SECOND_SEARCH_SECONDS", SETTINGS.deadline_seconds)
    outcome = await chat.ask(*NEAR)
    assert is_found(outcome)
    assert chat.model.asked == []
    assert (await chat.signals(outcome))["rewrite"] == "no_time"


async def test_a_model_gets_no_more_time_than_the_settings_allow(tmp_path: Path) -> None:
    async with chatting(tmp_path, RewriteSettings(seconds_max=0.0)) as chat:
        chat.model.error = Unavailable("model", "it is too slow")
        outcome = await chat.ask(*NEAR)
        assert is_found(outcome)
        assert (await chat.signals(outcome))["rewrite"] == "late"


async def test_a_search_by_the_api_is_rewritten_as_a_chat_is(chat: Chat) -> None:
    history = chat_request(*VAGUE).conversation.messages[:-1]  # type: ignore[union-attr] - it is one
    assert await chat.found(VAGUE[-1], history) == [KAYAK]
    assert len(chat.model.asked) == 1
    chat.model.error = Unavailable("model", "it is down")
    assert await chat.found(VAGUE[-1], history) == []
    assert await chat.found("Where is my kayak stored?") != []
    assert len(chat.model.asked) == 2


@pytest.mark.parametrize(
    "trouble", ["<html>", '{"query": "I cannot help with that"}', Unavailable("model", "x"), Unusable("model", "x")]
)
async def test_a_model_in_trouble_leaves_the_plain_result(chat: Chat, trouble: str | Unavailable) -> None:
    setattr(chat.model, "answer" if isinstance(trouble, str) else "error", trouble)
    assert is_found(await chat.ask(*NEAR))
    assert (len(chat.model.asked), chat.rig.embedder.calls) == (1, 1)


async def test_a_model_that_fails_time_and_again_is_left_alone_for_a_while(chat: Chat) -> None:
    chat.model.error = Unavailable("model", "it is down")
    for number in range(FAILURES_MAX + 3):
        outcome = await chat.ask(f"I want to paint my kayak number {number}.", "Yes?", "Where is it stored?")
    assert len(chat.model.asked) == FAILURES_MAX
    assert "rewrite" not in await chat.signals(outcome)
    pass_time(REST_SECONDS)
    await chat.ask(*NEAR)
    assert len(chat.model.asked) == FAILURES_MAX + 1


async def test_only_so_many_questions_are_rewritten_at_a_time(chat: Chat) -> None:
    chat.model.may_answer = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        said = [(f"I want to paint my kayak number {n}.", "Yes?", "Where is it stored?") for n in range(12)]
        asking = [group.create_task(chat.ask(*one)) for one in said]
        await until(lambda: sum(task.done() for task in asking) == 12 - IN_FLIGHT_MAX)
        assert len(chat.model.asked) == IN_FLIGHT_MAX
        chat.model.may_answer.set()
    assert len(chat.model.asked) == IN_FLIGHT_MAX
    assert all(is_found(task.result()) for task in asking)


async def test_an_embedder_that_is_down_ends_the_wait_for_the_model_at_once(chat: Chat) -> None:
    chat.rig.embedder.is_down = True
    chat.model.may_answer = asyncio.Event()
    outcome = await chat.ask(*NEAR)
    assert (outcome.status, outcome.reason) == (RecallStatus.UNAVAILABLE, "embedder")
