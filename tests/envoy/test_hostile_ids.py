"""Hostile user, project and session ids through the whole product: no leak, no broken request."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator

import httpx
import pytest
from api_shapes import SHAPES, AskedShape
from product import Product, eventually
from upstream import RecordingUpstream

from memory.model import is_valid_id

COMBINATION, NEIGHBOURS = b"99-13-57", b"24-68-02"
SECRET = "My storage unit at the harbour is 99-13-57."
QUESTION = "Which storage unit at the harbour is mine?"
VICTIM = "victim"

MARKS = tuple(r"""" ' \ \" \\ ` % _ * { } $ {{ }} // # -- ; | ( )""".split())
INVISIBLE = ("\n", "\r\n", "\t", "\0", " ", "\u00a0", "\u200b", "\u200d", "\ufeff", "\u202e", "\u2028")
OPERATORS = ("||", "&&", "!=", "==", "[", "]", "user_id", "null", "true", "../", "%00", 'in ["victim"]')
INJECTIONS = (
    *('" or user_id != "', "' or '1'=='1", '" || user_id like "%', '") or (user_id != "'),
    'victim" and project_id == "',
)
LOOK_ALIKES = ("\U0001f600", "ＶＩＣＴＩＭ", "victіm", "vıctim", "VICTIM", "victim\u0301")
FRAGMENTS = MARKS + INVISIBLE + OPERATORS + INJECTIONS + LOOK_ALIKES
HOSTILE = 160


def hostile_ids() -> list[str]:
    """The same at every run: alone or beside the victim's id, in turn, and mixed; and a few far too long."""
    chance = random.Random(7)
    ids = [(f"{VICTIM}{one}", f"{one}{VICTIM}", one)[number % 3] for number, one in enumerate(FRAGMENTS)]
    ids += [*INJECTIONS, *LOOK_ALIKES, "x" * 5_000, "é" * 129, "é" * 128, "", VICTIM + " " * 300]
    while len(ids) < HOSTILE:
        ids.append("".join(chance.choices(FRAGMENTS, k=chance.randint(2, 6))))
    assert not {VICTIM, "vault", "neighbour"} & set(ids)
    return ids


class Asker:
    """Asks for the combination of the vault through each API, and tells whether the upstream was told it."""

    def __init__(self, product: Product, upstream: RecordingUpstream, client: httpx.Client) -> None:
        self._url = product.url
        self._upstream = upstream
        self._client = client

    def by_body(self, **context: str) -> list[bool]:
        """With this `memory_context`, for each API; the request must be answered, and the context be gone."""
        told = []
        for shape in SHAPES:
            assert self._post(shape, {}, memory_context=context) == 200, context
            assert b"memory_context" not in self._upstream.received[-1].body, context
            told.append(self._has_told())
        return told

    def by_header(self, user_id: bytes) -> list[bool] | None:
        """None where HTTP has no way to say it: our client or Envoy refuses the header."""
        told = []
        for shape in SHAPES:
            try:
                status = self._post(shape, {b"x-authz-user-id": user_id})
            except httpx.LocalProtocolError:
                return None
            assert status in (200, 400), user_id
            if status == 200:
                told.append(self._has_told())
        return told or None

    def _post(self, shape: AskedShape, headers: dict[bytes, bytes], **more: object) -> int:
        body = json.dumps(shape.body([{"role": "user", "content": QUESTION}], **more)).encode()
        headers = {b"content-type": b"application/json", **headers}
        return self._client.post(f"{self._url}{shape.shape.path}", content=body, headers=headers).status_code

    def _has_told(self) -> bool:
        received = self._upstream.received[-1].body
        return COMBINATION in received or NEIGHBOURS in received


@pytest.fixture(scope="module")
def asker(shared_product: Product, shared_upstream: RecordingUpstream) -> Iterator[Asker]:
    """After the victim and a neighbour have each told theirs, in the project `vault`, where it can be found."""
    shared_product.chat(SECRET, VICTIM, project_id="vault")
    shared_product.chat(SECRET.replace(COMBINATION.decode(), NEIGHBOURS.decode()), "neighbour", project_id="vault")
    for user in (VICTIM, "neighbour"):
        assert shared_product.flush(user) == {"pending": 0, "failed": 0}
    with httpx.Client(timeout=30) as client:
        asker = Asker(shared_product, shared_upstream, client)
        eventually(lambda: all(asker.by_body(user_id=VICTIM)))
        eventually(lambda: all(asker.by_body(user_id=VICTIM, project_id="vault", session_id="other")))
        eventually(lambda: all(asker.by_header(VICTIM.encode()) or [False]))
        yield asker


@pytest.mark.slow("hundreds of hostile ids, through each API")
def test_no_user_id_reaches_another_users_memory_or_breaks_a_request(asker: Asker) -> None:
    assert [i for i in hostile_ids() if any(asker.by_body(user_id=i))] == []
    told = {i: asker.by_header(i.encode()) for i in hostile_ids()}
    assert [i for i, was_told in told.items() if any(was_told or ())] == []
    assert sum(was_told is not None for was_told in told.values()) > HOSTILE / 2


@pytest.mark.slow("hundreds of hostile ids, through each API")
def test_no_project_or_session_id_opens_another_project_of_the_same_user_or_of_another(asker: Asker) -> None:
    """A project sees its own memories and those of no project."""
    named = [i for i in hostile_ids() if i]  # "" is no project, and sees everything of its user
    assert [i for i in named if any(asker.by_body(user_id=VICTIM, project_id=i))] == []
    assert [i for i in named if any(asker.by_body(user_id=VICTIM, project_id="other", session_id=i))] == []


@pytest.mark.slow("a search for each hostile id")
def test_rest_refuses_or_isolates_hostile_ids(asker: Asker, shared_product: Product) -> None:
    with httpx.Client(base_url=shared_product.api, timeout=30) as client:
        for identifier in hostile_ids():
            params = {"user_id": identifier}
            found = client.post("/v1/memory/search", params=params, json={"query": QUESTION})
            assert found.status_code in ((200,) if is_valid_id(identifier) else (400, 401)), identifier
            assert COMBINATION not in found.content, identifier


def test_two_users_in_the_header_are_refused_by_rest_behind_the_proxy_too(shared_product: Product) -> None:
    for users in ((VICTIM, "mallory"), ("mallory", VICTIM)):
        lines = [("x-authz-user-id", user) for user in users]
        assert httpx.get(f"{shared_product.url}/v1/memory/stats", headers=lines).status_code == 400


def test_ids_that_merely_look_alike_stay_two_users(shared_product: Product, upstream: RecordingUpstream) -> None:
    composed, decomposed = "ren\u00e9", unicodedata.normalize("NFD", "ren\u00e9")
    shared_product.chat("My lucky stone is a moonstone.", composed)
    shared_product.flush(composed)
    for shape in SHAPES:
        shared_product.ask("What is my lucky stone?", decomposed, shape=shape)
        assert b"moonstone" not in upstream.last_chat().body
        shared_product.ask("What is my lucky stone?", composed, shape=shape)
        assert b"moonstone" in upstream.last_chat().body
