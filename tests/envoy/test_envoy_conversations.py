"""Conversations that clients edit, through a real Envoy and two filters that share nothing but the turn log."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
from filter_stack import FilterStack, running_stack
from product import Product, eventually, in_time, running_product
from random_talkers import Said, Tab, Talker, check_record, messages_of
from upstream import RecordingUpstream

from memory.model import TurnStatus

TALKERS = 4
ACTS = 12
WITHDRAWN_SECONDS_MAX = 2.0
RECORDED_SECONDS_MAX = 20.0
OUTAGE_SECONDS = 6.0  # a conversation that began in it takes that long: what may be filled in depends on it


@dataclass
class ThroughEnvoy:
    """`random_talkers.Served`, by a client that waits until a turn is recorded before it says more."""

    stack: FilterStack
    upstream: RecordingUpstream

    async def chat(self, user: str, said: Said) -> None:
        self.upstream.status = 500 if said.is_failed else 200
        self.upstream.answer = said.answer
        body = {"model": "m", "messages": messages_of(said), "memory_context": {"user_id": user}}
        answer = await self.stack.chat(json.dumps(body).encode())
        assert answer.status_code == self.upstream.status
        async with asyncio.timeout(RECORDED_SECONDS_MAX):
            while not await self._is_recorded(user, said):
                await asyncio.sleep(0.01)

    async def _is_recorded(self, user: str, said: Said) -> bool:
        """Only then does its continuation find it: a busy machine writes it after the answer has left."""
        record = await self.stack.turns(user)
        ended = [turn for turn in record if turn.status is not TurnStatus.OPENED]
        return any((turn.messages[0].content, turn.answer) == (said.text, said.answer) for turn in ended)


async def test_random_trees_through_two_filters_are_recorded_as_they_were_said(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack:
        served, filled_in = ThroughEnvoy(stack, upstream), 0
        for number in range(TALKERS):
            talker = Talker(f"talker{number}", random.Random(number), [Tab(), Tab(), Tab()])
            for _ in range(ACTS):
                await talker.act(served)
            record = await stack.turns(talker.name, until=len(talker.sent()))
            check_record(talker, record)
            filled_in += sum(turn.status is TurnStatus.FILLED_IN for turn in record)
        assert filled_in


def ask(product: Product, user: str, *messages: str) -> httpx.Response:
    """Messages of the user and the model in turn."""
    roles = ("user", "assistant")
    body = {
        "model": "m",
        "messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(messages)],
        "memory_context": {"user_id": user},
    }
    answer = httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30)
    assert answer.status_code == 200
    return answer


def test_what_an_edited_turn_said_is_gone_within_two_seconds_and_back_with_its_branch(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user, opening, cat, dog = (
        "writer of other beginnings",
        "Hello, I am new here.",
        "My cat is called Mochi.",
        "My dog is called Rex.",
    )
    upstream.answer = "Hi."
    ask(shared_product, user, opening)
    ask(shared_product, user, opening, "Hi.", cat)
    eventually(lambda: cat in shared_product.memories(user))
    ask(shared_product, user, opening, "Hi.", dog)
    began = time.monotonic()
    eventually(lambda: cat not in shared_product.memories(user))
    assert time.monotonic() - began < WITHDRAWN_SECONDS_MAX
    assert shared_product.flush(user) == {"pending": 0, "failed": 0}
    assert shared_product.memories(user) == [dog]
    in_time(lambda: ask(shared_product, user, "What is the name of my cat?"))
    assert "Mochi" not in upstream.last_chat().body.decode()
    answer = in_time(lambda: ask(shared_product, user, "What is the name of my dog?"))
    assert answer.headers["x-memory-status"] == "used"
    assert "Rex" in upstream.last_chat().body.decode()
    ask(shared_product, user, opening, "Hi.", cat, "Hi.", "Thank you!")
    eventually(lambda: cat in shared_product.memories(user) and dog not in shared_product.memories(user))


def test_what_was_said_while_we_were_down_is_learnt_once_and_examples_are_not(
    tmp_path: Path, upstream: RecordingUpstream
) -> None:
    """A conversation that we know goes on in the outage, another one begins in it; a prompt was known before."""
    user, city, cat, dog = "absent", "I live in Lisbon.", "My cat is called Mochi.", "My dog is called Rex."
    example = ("My horse is called Bella.", "Noted, Bella it is.")
    upstream.answer = "Hi."
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        ask(product, user, city)
        ask(product, user, *example, "Is this an example?")
        assert product.flush(user) == {"pending": 0, "failed": 0}
    time.sleep(OUTAGE_SECONDS)
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        ask(product, user, city, "Hi.", cat, "A fine name.", "Thank you!")
        ask(product, user, dog, "A good name.", "Thanks a lot!")
        ask(product, user, *example, "Is this an example, too?")
        ask(product, user, city, "Hi.", cat, "A fine name.", "Thank you!", "Hi.", "Good bye!")
        assert product.flush(user) == {"pending": 0, "failed": 0}
        assert sorted(product.memories(user)) == [city, cat, dog]


def test_a_history_of_ten_thousand_messages_passes_in_time(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    talk = [text for number in range(5_000) for text in (f"I saw bird number {number}.", "Noted.")]
    began = time.monotonic()
    ask(shared_product, "long", *talk, "How many birds?")
    assert time.monotonic() - began < 5.0
    assert len(upstream.last_chat().json()["messages"]) >= len(talk) + 1
