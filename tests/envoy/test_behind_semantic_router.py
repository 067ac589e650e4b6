"""Behind vLLM Semantic Router, with its configuration: the cases of its memory suite, as they are for memproxy.

A stand-in sends what the router would: Responses as chat completions with the earlier turns, its system prompt, and
what its decisions say about memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from product import Product, in_time, running_product
from upstream import RecordingUpstream

pytestmark = pytest.mark.full("a product with another configuration")

PERSONA = "You are Ferris, an assistant who answers in one sentence."
WITHOUT_MEMORY, STRICT = "OFFRECORD", "EXACTLY"  # words by which the router decides
ROUTER_FILE = {
    "version": "v0.3",
    "routing": {"decisions": []},
    "global": {
        "services": {"response_api": {"enabled": True}},
        "stores": {
            "memory": {
                "enabled": True,
                "auto_store": True,
                "milvus": {"collection": "of_the_router", "dimension": 384},
                "embedding_model": "mmbert",
                "default_retrieval_limit": 5,
                "default_similarity_threshold": 0.1,
                "secrets": {"password": "allow"},  # of ours: two cases ask for passwords
            }
        },
    },
}

Message = dict[str, str]


@dataclass
class Router:
    """The stand-in. `turns`: by the id of a response, what was said up to it."""

    product: Product
    upstream: RecordingUpstream
    turns: dict[str, list[Message]] = field(default_factory=dict)

    def respond(self, text: str, user: str, *, after: str = "") -> str:
        """The id of the response."""
        messages = [*self.turns.get(after, []), {"role": "user", "content": text}]
        answer = self.complete(messages, user)
        response_id = f"resp_{len(self.turns)}"
        self.turns[response_id] = [*messages, {"role": "assistant", "content": answer}]
        return response_id

    def complete(self, messages: Sequence[Message], user: str) -> str:
        body: dict[str, Any] = {"model": "m", "messages": [{"role": "system", "content": PERSONA}, *messages]}
        headers = {"x-authz-user-id": user, "x-selected-model": "m", "accept-encoding": "identity"}
        if WITHOUT_MEMORY in messages[-1]["content"]:  # a `header_mutation` of that decision
            headers["x-disable-router-memory"] = "true"
        if STRICT in messages[-1]["content"]:
            body["memory_config"] = {"similarity_threshold": 0.99}
        url = f"{self.product.url}/v1/chat/completions"
        answer = in_time(lambda: httpx.post(url, json=body, headers=headers, timeout=60))
        return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])

    def prompt(self, text: str, user: str) -> str:
        """What reaches the model server of a question in a new session."""
        self.respond(text, user)
        return self.upstream.last_chat().body.decode()

    def say(self, user: str, *texts: str) -> None:
        """The turns of one session, until they are learnt."""
        last = ""
        for text in texts:
            last = self.respond(text, user, after=last)
        assert self.product.flush(user) == {"pending": 0, "failed": 0}

    def stored(self, user: str) -> str:
        return "\n".join(self.product.memories(user))


@pytest.fixture(scope="module")
def product(shared_upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("router")
    (folder / "router.yaml").write_text(json.dumps(ROUTER_FILE))
    with running_product(folder / "data", upstream=shared_upstream.url, config=folder / "router.yaml") as product:
        yield product


@pytest.fixture
def router(product: Product, upstream: RecordingUpstream) -> Router:
    return Router(product, upstream)


def test_the_start_names_what_is_not_read(product: Product) -> None:
    for key in ("version", "routing", "global.services", "global.stores.memory.embedding_model"):
        assert f"key={key} " in f"{product.log()} ".replace("\n", " ")


def test_a_secret_that_may_be_kept_is_kept_and_given_to_its_owner_alone(router: Router) -> None:
    router.say("left", "Please remember: my door code is 4714.", "Keep it safe for me.")
    router.say("right", "Please remember: my wifi password is corvus77.")
    assert ("4714" in router.stored("left"), "4714" in router.stored("right")) == (True, False)
    assert "corvus77" not in router.stored("left")
    for user, given in (("left", True), ("right", False), ("stranger", False)):
        assert ("4714" in router.prompt("What is my door code?", user)) is given
    assert "corvus77" not in router.prompt("What is my wifi password?", "left")


def test_what_was_said_is_injected_in_a_new_session(router: Router) -> None:
    router.say("driver", "Please remember: I ride a green Moto Guzzi V7 built in 2019.")
    assert "moto guzzi" in router.stored("driver").casefold()
    prompt = router.prompt("Tell me about the motorcycle that I ride.", "driver")
    assert "green" in prompt
    assert PERSONA in prompt, "beside the router's system prompt"


def test_names_numbers_and_dates_stay_as_they_were_said(router: Router) -> None:
    said = "My badge is QX-30417, I joined on 2021-09-06, and my team lead is Prof. Ines Okafor in Hall 12."
    router.say("clerk", said, "That is all about my job.")
    stored = router.stored("clerk")
    assert [one for one in ("QX-30417", "2021-09-06", "Ines Okafor", "Hall 12") if one not in stored] == []


def test_memories_say_nothing_that_was_not_said(router: Router) -> None:
    router.say("guest", "Remember: my favourite bakery is Brotzeit in Gerber Lane.", "Nice bakery, is it not?")
    router.respond("What is the capital of Portugal?", "guest")
    router.product.flush("guest")
    stored = router.stored("guest").casefold()
    assert ("brotzeit" in stored, "portugal" in stored, "lisbon" in stored) == (True, False, False)


def test_of_two_statements_that_contradict_the_later_one_counts(router: Router) -> None:
    said = ("Remember: I live in Leeds.", "Actually, I moved to Cardiff in May.", "It was a long way.")
    router.say("mover", *said)
    assert "cardiff" in router.stored("mover").casefold()


def test_a_message_with_many_facts_is_stored_and_found(router: Router) -> None:
    router.say(
        "writer",
        "What a week! My sister Ruth opened her bookshop in Porto, and her husband Emil painted the walls. "
        "And I bought myself a Leica M6 camera at last.",
    )
    asked = {"Which camera did I buy?": "Leica", "What did Ruth open?": "bookshop", "What did Emil paint?": "walls"}
    assert [question for question, word in asked.items() if word not in router.prompt(question, "writer")] == []


def test_the_system_prompt_stays_where_nothing_is_known(router: Router) -> None:
    messages: Any = json.loads(router.prompt("Who are you?", "nobody"))["messages"]
    assert messages == [{"role": "system", "content": PERSONA}, {"role": "user", "content": "Who are you?"}]


def test_chat_completions_remember_over_conversations(router: Router) -> None:
    told: list[Message] = [{"role": "user", "content": "Please remember this: my favourite flower is the foxglove."}]
    answer = router.complete(told, "gardener")
    more = {"role": "user", "content": "Thanks for keeping that in mind."}
    router.complete([*told, {"role": "assistant", "content": answer}, more], "gardener")
    router.product.flush("gardener")
    assert "foxglove" in router.stored("gardener")
    assert "foxglove" in router.prompt("What is my favourite flower?", "gardener")


def test_a_decision_without_memory_or_with_a_high_threshold_injects_none(router: Router) -> None:
    router.say("owner-of-oscar", "My parrot is called Oscar, and he is a macaw.")
    question = "What is my parrot called, and what kind is he?"
    for decision in (WITHOUT_MEMORY, STRICT):
        assert "Oscar" not in router.prompt(f"{decision} {question}", "owner-of-oscar")
    assert "Oscar" in router.prompt(question, "owner-of-oscar")
