"""Half of the conversations are held out, through the whole product: what reaches the model, and what is reported.

What users say is read by a table, as every model that an operator may name: no score of ours decides what it means.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from product import Product, eventually, in_time, running_product
from prometheus_client.parser import text_string_to_metric_families
from scripted_model import running_table_model
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

pytestmark = pytest.mark.full("a product that holds conversations out")
MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
FACT, QUESTION = "My boat is called Rosalie.", "What is my boat called?"
KNOWING, UNKNOWING = "Rosalie.", "I am sorry, but I do not know anything about your boat. What is it called?"
USERS = tuple(f"skipper-{number}" for number in range(16))  # they and the salt are fixed, and so are the draws


@dataclass
class AnsweringUpstream:
    """Knows what the boat is called if a system message says so: clients here send none, so it is a note."""

    noted: dict[str, list[bool]] = field(default_factory=dict)  # whether it got a note, request by request, by user

    async def answer(self, request: Request) -> JSONResponse:
        body = await request.json()
        notes = " ".join(one["content"] for one in body["messages"] if one["role"] == "system")
        self.noted.setdefault(body["user"], []).append(bool(notes))
        message = {"role": "assistant", "content": KNOWING if "Rosalie" in notes else UNKNOWING}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


@dataclass
class Talk:
    """One conversation; its client sends all of it again each time. Without a session, its first message tells it."""

    product: Product
    user: str
    session: str = ""
    messages: list[dict[str, str]] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)

    def says(self, text: str) -> str:
        """Returns the answer."""
        context = {"user_id": self.user, **({"session_id": self.session} if self.session else {})}
        self.messages.append({"role": "user", "content": text})
        body = {"model": "m", "messages": self.messages, "user": self.user, "memory_context": context}
        url = f"{self.product.url}/v1/chat/completions"
        answer = in_time(lambda: httpx.post(url, json=body, timeout=30))
        self.answers.append(answer)
        self.messages.append(answer.json()["choices"][0]["message"])
        return self.messages[-1]["content"]


def told(product: Product, user: str) -> None:
    Talk(product, user, "earlier").says(FACT)
    product.flush(user)


def talked(product: Product, user: str) -> Talk:
    """A user who is answered from memory corrects it; one who is not says the fact again, and asks again."""
    talk = Talk(product, user, f"later-{user}" if USERS.index(user) % 2 else "")
    if talk.says(QUESTION) == KNOWING:
        talk.says("No, my boat is called Bluebell now.")
    else:
        talk.says(FACT)
        talk.says(QUESTION)
    product.flush(user)
    return talk


@dataclass(frozen=True)
class Held:
    """All conversations after they were held."""

    product: Product
    upstream: AnsweringUpstream
    config: Path
    talks: list[Talk]

    @property
    def noted(self) -> list[Talk]:
        return [talk for talk in self.talks if talk.answers[0].headers["x-memory-status"] == "used"]

    @property
    def held_out(self) -> list[Talk]:
        return [talk for talk in self.talks if talk.answers[0].headers["x-memory-status"] == "skipped"]

    def count(self, name: str, **labels: str) -> float:
        page = httpx.get(f"http://127.0.0.1:{self.product.ports['metrics']}/metrics", timeout=30).text
        samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
        return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    folder, upstream = tmp_path_factory.mktemp("holdout"), AnsweringUpstream()
    config, data_dir = folder / "c.yaml", folder / "data"
    app = Starlette(routes=[Route("/v1/chat/completions", upstream.answer, methods=["POST"])])
    with ExitStack() as stack:
        port, reading = stack.enter_context(served(app)), stack.enter_context(running_table_model())
        memory = {**reading["memory"], "holdout": {"share": 0.5}}
        config.write_text(json.dumps({**reading, "data_dir": str(data_dir), "memory": memory}))
        product = stack.enter_context(running_product(data_dir, upstream=f"http://127.0.0.1:{port}", config=config))
        threads = stack.enter_context(ThreadPoolExecutor(4))
        list(threads.map(lambda user: told(product, user), USERS))
        assert not any(any(notes) for notes in upstream.noted.values())
        upstream.noted.clear()
        yield Held(product, upstream, config, list(threads.map(lambda user: talked(product, user), USERS)))


def test_some_of_the_conversations_get_no_note_in_any_of_their_turns(held: Held) -> None:
    assert len(held.noted) + len(held.held_out) == len(USERS), "a note was found for each of them"
    for talk in held.held_out:
        assert [answer.headers["x-memory-status"] for answer in talk.answers] == ["skipped"] * 3
        assert not any(held.upstream.noted[talk.user])
    for talk in held.noted:
        assert held.upstream.noted[talk.user][-1], "what was noted in the first turn is put back in the next"
    for talks in (held.held_out, held.noted):
        assert {bool(talk.session) for talk in talks} == {False, True}, "with a session, and by the first message"


def test_metrics_count_questions_and_turns_of_both_arms(held: Held) -> None:
    """At least: a question that was asked again, since memory was too late, may count again."""
    noted, held_out = len(held.noted), len(held.held_out)
    for arm, questions, turns in (("noted", noted, 2 * noted), ("held_out", 3 * held_out, 3 * held_out)):
        assert held.count("memproxy_holdout_questions_total", arm=arm) >= questions
        eventually(lambda arm=arm, turns=turns: held.count("memproxy_holdout_turns_total", arm=arm) >= turns)
    assert held.count("memproxy_holdout_signs_total", arm="held_out", sign="repeated_fact") >= held_out
    assert held.count("memproxy_holdout_signs_total", arm="noted", sign="repeated_fact") == 0
    assert held.count("memproxy_holdout_signs_total", arm="noted", sign="correction") >= noted


def test_the_report_compares_what_users_did_in_both_arms(held: Held) -> None:
    command = [MEMPROXY, "eval", "holdout", "--json", "--config", str(held.config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    noted, held_out, difference = report["noted"], report["held_out"], report["difference"]
    assert (noted["conversations"], held_out["conversations"]) == (len(held.noted), len(held.held_out))
    assert report["mixed"] == 0
    assert (noted["corrected"]["value"], noted["repeated_facts"]["value"]) == (1.0, 0.0)
    assert held_out["repeated_facts"]["value"] == 1.0
    assert difference["corrected"]["high"] < 0, "only those who got a note had something to correct"
    for longer_without in ("repeated_facts", "follow_ups", "turns", "answer_tokens"):
        assert difference[longer_without]["low"] > 0, longer_without
    assert abs(difference["note_tokens"]["value"]) < noted["note_tokens"]["value"], "the note that was not sent counts"
