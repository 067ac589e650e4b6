"""Three hundred hostile user, project and session ids through the whole product: no leak, no broken request."""

from __future__ import annotations

import itertools
import json
import random
import unicodedata

import httpx
import pytest
from product import Product
from upstream import RecordingUpstream

from memory.model import is_valid_id

SECRET = "My vault combination is 99-13-57."
QUESTION = "What is my vault combination?"
VICTIM = "victim"

MARKS = (
    '"',
    "'",
    "\\",
    '\\"',
    "\\\\",
    "`",
    "%",
    "_",
    "*",
    "{",
    "}",
    "$",
    "{{",
    "}}",
    "//",
    "#",
    "--",
    ";",
    "|",
    "(",
    ")",
)
INVISIBLE = ("\n", "\r\n", "\t", "\0", " ", "\u00a0", "\u200b", "\u200d", "\ufeff", "\u202e", "\u2028")
OPERATORS = ("||", "&&", "!=", "==", "[", "]", "user_id", "null", "true", "../", "%00", 'in ["victim"]')
INJECTIONS = (
    '" or user_id != "',
    "' or '1'=='1",
    '" || user_id like "%',
    '") or (user_id != "',
    'victim" and project_id == "',
)
LOOK_ALIKES = ("\U0001f600", "ＶＩＣＴＩＭ", "victіm", "vıctim", "VICTIM", "victim\u0301")
FRAGMENTS = MARKS + INVISIBLE + OPERATORS + INJECTIONS + LOOK_ALIKES


def hostile_ids() -> list[str]:
    """The same 300 at every run: alone, around the victim's id, and mixed; and a few far too long."""
    chance = random.Random(7)
    ids = [*FRAGMENTS]
    ids += [f"{VICTIM}{fragment}" for fragment in FRAGMENTS]
    ids += [f"{fragment}{VICTIM}" for fragment in FRAGMENTS]
    ids += ["x" * 5_000, "é" * 129, "é" * 128, "", VICTIM + " " * 300]
    while len(ids) < 300:
        ids.append("".join(chance.choices(FRAGMENTS, k=chance.randint(2, 6))))
    return [i for i in ids[:300] if i != VICTIM]


def ask(product: Product, body: dict[str, object], client: httpx.Client) -> httpx.Response:
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": QUESTION}], **body})
    return client.post(f"{product.url}/v1/chat/completions", content=raw.encode(), timeout=30)


@pytest.mark.stack
def test_no_id_reaches_another_users_memory_or_breaks_a_request(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    shared_product.chat(SECRET, VICTIM, project_id="vault")
    assert shared_product.flush(VICTIM) == {"pending": 0, "failed": 0}
    hostile = hostile_ids()
    with httpx.Client() as client:
        for identifier in hostile:
            answer = ask(shared_product, {"memory_context": {"user_id": identifier}}, client)
            assert answer.status_code == 200, identifier
            assert b"99-13-57" not in upstream.received[-1].body, identifier
            assert b"memory_context" not in upstream.received[-1].body, identifier
        for identifier, field in itertools.product(hostile[:150], ("project_id", "session_id")):
            answer = ask(shared_product, {"memory_context": {"user_id": "mallory", field: identifier}}, client)
            assert answer.status_code == 200, (field, identifier)
            assert b"99-13-57" not in upstream.received[-1].body, (field, identifier)


@pytest.mark.stack
def test_rest_refuses_or_isolates_hostile_ids(shared_product: Product) -> None:
    shared_product.chat(SECRET, VICTIM, project_id="vault")
    shared_product.flush(VICTIM)
    with httpx.Client(base_url=shared_product.api, timeout=30) as client:
        for identifier in hostile_ids():
            params = {"user_id": identifier}
            found = client.post("/v1/memory/search", params=params, json={"query": QUESTION})
            assert found.status_code in (200, 400, 401), identifier
            assert "99-13-57" not in found.text, identifier
            if not is_valid_id(identifier):
                assert found.status_code in (400, 401), identifier


@pytest.mark.stack
def test_ids_that_merely_look_alike_stay_two_users(shared_product: Product, upstream: RecordingUpstream) -> None:
    composed, decomposed = "ren\u00e9", unicodedata.normalize("NFD", "ren\u00e9")
    shared_product.chat("My lucky stone is a moonstone.", composed)
    shared_product.flush(composed)
    shared_product.chat("What is my lucky stone?", decomposed)
    assert b"moonstone" not in upstream.last_chat().body
    shared_product.chat("What is my lucky stone?", composed)
    assert b"moonstone" in upstream.last_chat().body
