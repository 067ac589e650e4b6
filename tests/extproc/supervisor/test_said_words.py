"""What a client said is found where clients of vLLM Semantic Router look for it, and an allowed secret comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pymilvus
import pytest
from product import Product, eventually, running_product
from upstream import RecordingUpstream

SECONDS_MAX = 10.0  # promised to those clients
STRICT = "memory: {}\n"
SETTINGS = "memory: {secrets: {password: allow}}\n"
CODE = "my locker code is 9876"


@contextmanager
def configured(folder: Path, upstream: str, settings: str) -> Iterator[Product]:
    config = folder / "memproxy.yaml"
    config.write_text(settings)
    with running_product(folder / "data", upstream=upstream, config=config) as product:
        yield product


@pytest.fixture(scope="module")
def lenient(shared_upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with configured(tmp_path_factory.mktemp("lenient"), shared_upstream.url, SETTINGS) as product:
        yield product


@pytest.fixture(scope="module")
def strict(shared_upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Secrets are redacted, as by default."""
    with configured(tmp_path_factory.mktemp("strict"), shared_upstream.url, STRICT) as product:
        yield product


def rows_with(product: Product, user_id: str, words: str) -> list[dict[str, object]]:
    """Straight from Milvus, with the fields of vLLM Semantic Router's collection."""
    client = pymilvus.MilvusClient(f"http://127.0.0.1:{product.ports['milvus']}")
    try:
        found = client.query(
            "agentic_memory",
            filter=f'user_id == "{user_id}" and content like "%{words}%"',
            output_fields=["user_id", "content", "created_at"],
            consistency_level="Strong",
        )
        return [dict(row) for row in found]
    finally:
        client.close()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(
    "said", ["Quokka lanterns drift past the viaduct", "Why is the zinc kettle humming, and what is 4*4?"]
)
def test_what_was_said_is_found_verbatim_within_ten_seconds(
    lenient: Product, upstream: RecordingUpstream, path: str, said: str
) -> None:
    user = f"said-{path[4:8]}-{said[:3]}"
    message = {"messages": [{"role": "user", "content": said}]} if path.endswith("completions") else {"input": said}
    headers = {"x-authz-user-id": user}
    answer = httpx.post(f"{lenient.url}{path}", json={"model": "m", **message}, headers=headers, timeout=30)
    (row,) = eventually(lambda: rows_with(lenient, user, said), seconds=SECONDS_MAX)
    assert row["user_id"] == user
    answered_at = parsedate_to_datetime(answer.headers["date"]).timestamp()
    assert float(str(row["created_at"])) == pytest.approx(answered_at, abs=5)
    assert rows_with(lenient, "somebody-else", said) == []
    assert lenient.memories(user) == []
    found = httpx.post(f"{lenient.api}/v1/memory/search", params={"user_id": user}, json={"query": said}, timeout=30)
    assert found.json()["memories"] == []
    lenient.chat("What do you know of my quokka lanterns and my zinc kettle?", user, session_id="another")
    assert said not in upstream.last_chat().body.decode()  # it is in no note
    httpx.delete(f"{lenient.api}/v1/memory", params={"user_id": user}, timeout=30).raise_for_status()
    assert rows_with(lenient, user, said) == []


def test_a_secret_is_never_among_the_words(strict: Product) -> None:
    strict.chat(f"zork, {CODE}", "said-secret")
    eventually(lambda: rows_with(strict, "said-secret", "zork"), seconds=SECONDS_MAX)
    assert rows_with(strict, "said-secret", "9876") == []


def test_an_allowed_secret_is_a_fact_that_comes_back(lenient: Product, upstream: RecordingUpstream) -> None:
    lenient.chat(CODE, "ann", session_id="s1")
    assert eventually(lambda: rows_with(lenient, "ann", "9876"), seconds=SECONDS_MAX)
    eventually(lambda: any("9876" in memory for memory in lenient.memories("ann")), seconds=SECONDS_MAX)
    lenient.flush("ann")  # REST sees a write before it is over, chats afterwards
    lenient.ask("What is my locker code?", "ann", session_id="s2")
    assert "9876" in upstream.last_chat().body.decode()
    lenient.chat("my api key is sk-proj-Zz9aQ1xT7LmN4vB8cW2eR5tY", "ann", session_id="s3")
    lenient.flush("ann")
    assert rows_with(lenient, "ann", "Zz9aQ1xT7LmN4vB8cW2eR5tY") == []
