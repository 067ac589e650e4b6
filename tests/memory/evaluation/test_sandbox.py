"""What an evaluation learns with is the product: log, worker, triggers, orders. Only time is made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from plain_reader import PlainReader
from sandboxes import running_sandbox

from memory.errors import Unavailable, Unusable
from memory.evaluation.records import seconds
from memory.evaluation.sandbox import LearningFailed, exchanges_of
from memory.model import Claim, MemoryStatus, Turn
from memory.processes.from_settings import IDLE_SECONDS_WITH_A_MODEL

BEGAN = "2025-03-04T09:00:00Z"


def said(*messages: str, at: str = BEGAN) -> dict[str, Any]:
    """A session in which each message is replied to."""
    reply = {"role": "assistant", "content": "Noted."}
    return {"at": at, "messages": [m for text in messages for m in ({"role": "user", "content": text}, reply)]}


def record(*sessions: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "lang": "en", "sessions": list(sessions)}


class Watched(PlainReader):
    """Knows which turns it was given; the first `failures` times it fails with `error`."""

    def __init__(self, *, failures: int = 0, error: type[Unavailable] = Unavailable) -> None:
        super().__init__()
        self.windows: list[list[str]] = []
        self._failures = failures
        self._error = error

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.windows.append([turn.messages[0].content for turn in turns])
        if len(self.windows) <= self._failures:
            raise self._error("model", "switched off by the test")
        return await super().read(turns, context=context)


async def test_the_sessions_are_learnt_in_order_as_one_user_and_secrets_never_enter() -> None:
    one = record(
        said("I live in Leeds, my password is tiger-lamp-44, and I like tea"),
        said("I live in York", at="2025-06-04T09:00:00Z"),
    )
    async with running_sandbox() as sandbox:
        learnt = await sandbox.learn(one)
    assert [m.content for m in learnt.memories if m.status is MemoryStatus.SUPERSEDED] != []
    assert "tiger" not in "".join(m.content for t in learnt.turns for m in t.messages)
    assert [turn.scope.session_id for turn in learnt.turns] == ["r/0", "r/1"]
    assert [turn.at for turn in learnt.turns] == [seconds(BEGAN), seconds("2025-06-04T09:00:00Z")]


async def test_each_record_begins_with_nothing_and_is_searched_as_a_chat_of_its_own_user_would() -> None:
    """Also where it was said earlier than the one before. An embedder that is down is not waited for."""
    embedder = HashingEmbedder(dimension=384)
    async with running_sandbox(embedder=embedder) as sandbox:
        other = await sandbox.learn(record(said("My dog is called Rex.", at="2025-09-01T09:00:00Z")))
        learnt = await sandbox.learn(record(said("My cat is called Tom.")))
        assert [(one.content, one.created_at) for one in learnt.memories] == [("My cat is called Tom.", seconds(BEGAN))]
        asked = "What is my cat called?", seconds("2025-03-04T10:00:00Z")
        found = await sandbox.search(learnt, *asked)
        assert [memory.content for memory in found] == ["My cat is called Tom."]
        assert await sandbox.search(other, *asked) != found
        embedder.is_down = True
        with pytest.raises(LearningFailed, match="embedder"):
            await sandbox.learn(record(said("I live in Leeds.")))


async def test_without_a_model_each_turn_is_a_window_and_with_one_a_session_is_once_it_is_silent() -> None:
    reader, model = Watched(), Watched()
    async with running_sandbox(reader) as sandbox:
        await sandbox.learn(record(said("I live in Leeds.", "I like tea.")))
    assert reader.windows == [["I live in Leeds."], ["I like tea."]]
    async with running_sandbox(model=model) as sandbox:
        later = said("I have a dog.", at="2025-04-01T09:00:00Z")
        learnt = await sandbox.learn(record(said("I live in Leeds.", "I like tea."), later))
    assert model.windows == [["I live in Leeds.", "I like tea."], ["I have a dog."]]
    last_said = (learnt.turns[1].at, learnt.turns[2].at)
    learnt_at = {round(memory.created_at, 3) for memory in learnt.memories}
    assert learnt_at == {at + IDLE_SECONDS_WITH_A_MODEL for at in last_said}


@pytest.mark.parametrize("error", [Unavailable, Unusable])
async def test_a_model_that_fails_is_asked_again_and_given_up_with_a_reason(error: type[Unavailable]) -> None:
    model = Watched(failures=2, error=error)
    async with running_sandbox(model=model) as sandbox:
        learnt = await sandbox.learn(record(said("I live in Leeds.")))
    assert [memory.content for memory in learnt.memories] == ["I live in Leeds."]
    assert len(model.windows) == 3
    async with running_sandbox(model=Watched(failures=1_000, error=error)) as sandbox:
        with pytest.raises(LearningFailed, match="switched off by the test"):
            await sandbox.learn(record(said("I live in Leeds.")))


def test_a_session_is_cut_into_turns_as_the_observing_filter_cuts_a_chat() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "what a tool found"},
        {"role": "assistant", "content": "The tool found it."},
        {"role": "user", "content": "third"},
    ]
    cut = [([m.content for m in said], answer) for said, answer in exchanges_of({"at": BEGAN, "messages": messages})]
    assert cut == [(["first", "second"], ""), (["third"], "")]
