"""Real parts of a running product are stopped or killed: every chat is answered, and memory comes back by itself.

Chats of both APIs take turns.
"""

from __future__ import annotations

import signal
from functools import partial

import httpx
import pytest
from api_shapes import ASKED_COMPLETIONS, SHAPES, AskedShape
from product import READY_SECONDS_MAX, Product, eventually, sentences, with_pid
from upstream import RecordingUpstream

pytestmark = pytest.mark.full("parts of the product are killed, and come back")
FACT = "My locker at the pool has the number 117."
QUESTION = "What number has my locker at the pool?"
OBSERVERS = "cluster.memory_observe.membership_healthy"
STORE_SEARCHES = 'memproxy_store_seconds_count{call="search"}'


@pytest.fixture(scope="module")
def product(shared_product: Product) -> Product:
    """The shared one: each of these tests ends when it is whole again."""
    shared_product.chat(FACT, "patient")
    assert shared_product.flush("patient")["pending"] == 0
    return shared_product


def answered(
    product: Product, upstream: RecordingUpstream, *, shape: AskedShape = ASKED_COMPLETIONS, is_stripped: bool = True
) -> str:
    """One chat; its memory status. Fails if it is unanswered or carries our fields to the upstream."""
    answer = product.chat(QUESTION, "patient", shape=shape)
    assert answer.status_code == 200
    if is_stripped:
        assert b"memory_context" not in upstream.last_chat().body
    return answer.headers.get("x-memory-status", "")


def remembers_again(product: Product, upstream: RecordingUpstream) -> None:
    for shape in SHAPES:
        again = partial(answered, product, upstream, shape=shape, is_stripped=False)
        eventually(lambda again=again: again() == "used", seconds=READY_SECONDS_MAX, every=0.3)
        assert "117" in shape.note(upstream.last_chat().body, QUESTION)
    eventually(lambda: is_observed(product))


def is_observed(product: Product) -> bool:
    """Whether Envoy shows replies to a filter: it checks that apart from requests, and may find it a moment later."""
    with product.admin() as admin:
        stats = admin.get("/stats", params={"filter": OBSERVERS})
    return stats.text.strip() == f"{OBSERVERS}: 1"


def is_held(product: Product) -> None:
    """Wait until the filter answers from the patient's working set: then it asks the store for nothing."""
    page = f"http://127.0.0.1:{product.ports['metrics']}/metrics"

    def searches() -> float:
        lines = httpx.get(page, timeout=30).text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(STORE_SEARCHES))

    def costs_no_search() -> bool:
        before = searches()
        return product.chat(QUESTION, "patient").headers["x-memory-status"] == "used" and searches() == before

    eventually(costs_no_search, every=0.3)


def is_learnt(product: Product, user_id: str, statement: str) -> bool:
    try:
        return sentences([statement]) <= sentences(product.memories(user_id))
    except httpx.HTTPError:  # the API says 503 while the store is away
        return False


def test_milvus_stopped(product: Product, upstream: RecordingUpstream) -> None:
    remembers_again(product, upstream)
    is_held(product)
    [milvus] = product.children("milvus-lite")[:1]
    with_pid(milvus, signal.SIGSTOP)
    try:
        for shape in SHAPES:  # who talked before still gets memories, from the working set
            eventually(lambda shape=shape: answered(product, upstream, shape=shape) == "used")
            assert "117" in shape.note(upstream.last_chat().body, QUESTION)
        for shape in SHAPES:
            product.chat(QUESTION, "newcomer", shape=shape)
            assert "117" not in upstream.last_chat().body.decode()
    finally:
        with_pid(milvus, signal.SIGCONT)
    remembers_again(product, upstream)


@pytest.mark.parametrize("part", ["milvus-lite", "memproxy worker", "memproxy filter"])
def test_part_killed(product: Product, upstream: RecordingUpstream, part: str) -> None:
    remembers_again(product, upstream)
    for pid in product.children(part):
        with_pid(pid, signal.SIGKILL)
    for shape in SHAPES:
        answered(product, upstream, shape=shape, is_stripped=part != "memproxy filter")
    remembers_again(product, upstream)
    statement = f"My dog is called {part.split()[-1].title()}."
    users = {f"{shape.name} user of {part}": shape for shape in SHAPES}
    for user, shape in users.items():
        product.chat(statement, user, shape=shape)
    for user in users:
        eventually(lambda user=user: is_learnt(product, user, statement), seconds=READY_SECONDS_MAX, every=0.3)


@pytest.mark.parametrize("part", ["memproxy api", "envoy"])
def test_a_part_that_clients_talk_to_is_started_again_and_counted(
    product: Product, upstream: RecordingUpstream, part: str
) -> None:
    [before], name = product.children(part), part.rpartition(" ")[2]
    with_pid(before, signal.SIGKILL)
    eventually(lambda: [pid for pid in product.children(part) if pid != before])

    def page() -> str:
        return httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text

    eventually(lambda: f'memproxy_part_up{{part="{name}"}} 1.0' in page(), seconds=READY_SECONDS_MAX, every=0.5)
    assert f'memproxy_part_restarts_total{{part="{name}"}}' in page()
    assert product.stdout == [product.stdout[0]]
    remembers_again(product, upstream)
