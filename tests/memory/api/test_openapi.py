"""The OpenAPI document: it names what is served, and what is served answers as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from api_parts import ANN, kept
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from library_parts import NOW, Parts, report
from project_members import invited_to, let_in
from prometheus_client import CollectorRegistry
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served_library import served_library

from memory.api.callers import Callers
from memory.api.document import PAGES, PATHS
from memory.api.rest import framework_app
from memory.model import CarriedNote, Evidence, Memory, Message, RecallStatus, Receipt, Scope, Turn, TurnStatus
from memory.model.erasures import ErasureRequest
from memory.model.memories import MemoryVisibility
from memory.model.projects import ProjectRole
from memory.runtime.metrics import Metrics
from memory.service.requests import NewMemory

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_schema_conformance, response_headers_conformance),
]
EXPLORING = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
EXAMPLES = 2  # of each operation in each way
KNOWN = {"memories": "m1", "operator": "one", "turns": "id-000001", "receipts": "r1", "sessions": "s1"}
KNOWN |= {"conversations": "s1", "messages": "x1", "erasures": "e1", "projects": "p1"}
PROJECTS = {"transferProject": "p2", "removeProjectMember": "p3"}  # of which these calls make something else
INVITATIONS = {"acceptInvitation": "k1", "declineInvitation": "k2"}
TURN = {"role": "user", "content": "I like tea"}
MESSAGE = {"source_type": "agent", "source": "a", "target_type": "agent", "target": "b", "content": "a plan"}
OPERATORS = ("health", "queue", "dead-letters", "requests", "reports", "reports/{id}", "erasures", "erasures/{id}")
BODIES: dict[str, Any] = {  # that succeed
    "addMemories": {"memories": [{"content": "I like tea", "created_at": "2025-03-04T09:00:00Z"}]},
    "searchMemories": {"query": "tea", "history": [TURN]},
    "editMemory": {"importance": 0.5},
    "appendTurns": {"session_id": "s2", "at": NOW, "messages": [TURN]},
    "flush": {"session_id": "s1"},
    "setProfile": {"pinned": ["Answer in German"]},
    "addMessages": {"messages": [MESSAGE | {"id": "x1", "at": NOW}]},
    "trimConversation": {"keep_last": 5},
    "compressConversation": {},
    "replayDeadLetters": {"ids": ["no such window"]},
    "dropDeadLetters": {"ids": ["no such window"]},
    "eraseUser": {"user_id": "zoe"},
    "createProject": {"project_id": "p4"},
    "setProjectMember": {"role": "editor"},
    "transferProject": {"user_id": "bob"},
    "importMemories": '{"kind":"memproxy-export","user_id":"ann"}\n',
}


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode()


async def fill(parts: Parts) -> None:
    """One of each resource, so that answers with content are checked as well."""
    quoted = (Evidence("I like tea", "t1"),)
    await parts.put(Memory("m1", "ann", "I like tea", NOW, NOW, NOW, category="preference", evidence=quoted))
    note = CarriedNote(None, ("m1",), 9, is_new=True)
    await kept(parts, Receipt("r1", "ann", NOW, RecallStatus.USED, "found", notes=(note,)))
    await parts.reports.keep(report("one", at=NOW))
    await parts.erasures.begun("ann", ErasureRequest("e1", NOW, NOW, {"memories": 1}))
    for session in ("s1", "s2", "s3"):
        await parts.library.append_turn(Scope("ann", session_id=session), [Message("user", "I like tea")])
    asked, scope = (Message("user", "What do I drink?"),), Scope("ann", session_id="s4")
    await parts.turn_log.append(Turn("t4", scope, NOW, asked, TurnStatus.CLOSED, "Tea.", NOW, receipt_id="r1"))
    for project in ("p1", *PROJECTS.values()):
        await parts.library.projects.membership.create("ann", project)
        await let_in(parts.library.projects.membership, "ann", project, "bob", ProjectRole.EDITOR)
    await invited_to(parts.library.projects.membership, "ann", *INVITATIONS.values())
    shared = NewMemory("We deploy on Fridays", visibility=MemoryVisibility.PUBLIC)
    await parts.library.add(Scope("ann", "p1"), [shared])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_library(tmp_path_factory.mktemp("library"), fill) as url:
        yield url


@pytest.fixture(scope="module")
def document(url: str) -> dict[str, Any]:
    answers = [httpx.get(url + path) for path in PATHS]
    assert [answer.status_code for answer in answers] == [200] * len(PATHS)
    assert answers[0].content == answers[1].content
    found: dict[str, Any] = answers[0].json()
    return found


def probe(operation: Any, url: str, exploring: settings) -> set[int]:
    """Calls it as it succeeds, and as the document allows. Returns the statuses of the answers."""
    name = operation.definition.raw["operationId"].removesuffix("OnApiPort")
    is_second = operation.definition.raw["operationId"] == "deleteSessionOnApiPort"
    is_of_operator = operation.tags == ["operator"] and name != "getErasureOfUser"
    query = {} if is_of_operator else {"user_id": "ann"}
    statuses: set[int] = set()

    def call(case: Any) -> None:
        statuses.add(case.call_and_validate(base_url=url, headers=ANN, checks=CHECKS).status_code)

    @exploring
    @given(case=operation.as_strategy())
    def call_with_what_is_known(case: Any) -> None:
        tag = "erasures" if name == "getErasureOfUser" else operation.tags[0]
        known = (PROJECTS | INVITATIONS).get(name, KNOWN.get(tag))
        case.path_parameters = {"id": "s3" if is_second else known, "member": "bob"}
        case.query = query
        case.headers = {}  # no ETag that is drawn is one of a memory
        case.body = BODIES.get(name, case.body)
        call(case)

    call_with_what_is_known()
    exploring(given(case=operation.as_strategy())(call))()
    return statuses


@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(100, marks=pytest.mark.soak("minutes of them"))])
def test_every_answer_is_as_the_document_says_and_none_is_a_fault_of_ours(
    url: str, document: dict[str, Any], examples: int
) -> None:
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == len(operations_of(document)) >= 40
    statuses = {}
    first, last = "/v1/memory/opt-out", ("/v1/memory", "/v1/memory/everything")  # who has opted out is refused
    order = {one: (one.path != first, one.method == "delete", one.path in last) for one in operations}
    for operation in sorted(operations, key=order.__getitem__):
        exploring = settings(EXPLORING, max_examples=examples)
        statuses[operation.definition.raw["operationId"]] = probe(operation, url, exploring)
    refused = {name for name, codes in statuses.items() if min(codes) >= 400}
    assert refused == set()


EDGES = st.sampled_from([0, -1, 2**53, 2**64, 10**40, 1e308, -0.0, "", " ", "\x00", "\u200b", "user", "semantic"])
TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)  # lone halves of surrogate pairs included


@pytest.mark.full("some hundred requests to a library on disk")
def test_no_request_breaks_the_api(url: str, document: dict[str, Any]) -> None:
    """JSON with the document's own names, and bytes that are none."""
    types = document["components"]["schemas"].values()
    names = st.sampled_from(sorted({name for one in types for name in one.get("properties", ())}))
    shaped = st.recursive(
        st.none() | st.booleans() | EDGES | TEXT | st.floats(),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(names | TEXT, below, max_size=4),
        max_leaves=12,
    )
    bodies = st.binary(max_size=40) | shaped.map(lambda value: json.dumps(value).encode())
    taking = [(path, m) for path, ms in document["paths"].items() for m, one in ms.items() if "requestBody" in one]
    with httpx.Client(base_url=url, headers=ANN | {"content-type": "application/json"}) as client:

        @settings(EXPLORING, max_examples=300)
        @given(call=st.sampled_from(taking), body=bodies, parameter=TEXT)
        def send(call: tuple[str, str], body: bytes, parameter: str) -> None:
            path, method = call
            text = parameter.encode(errors="replace").decode()
            answer = client.request(method, path.replace("{id}", "x"), content=body, params={"project_id": text})
            assert answer.status_code < 500, answer.text
            assert ("error" in answer.json()) == (answer.status_code >= 400)

        send()


def test_unknown_fields_are_refused_where_the_document_says_so(url: str, document: dict[str, Any]) -> None:
    types = document["components"]["schemas"]
    tried = 0
    with httpx.Client(base_url=url, headers=ANN) as client:
        for path, operations in document["paths"].items():
            for method, one in operations.items():
                shape = one.get("requestBody", {}).get("content", {}).get("application/json")
                if shape is None:
                    continue
                named = shape["schema"].get("$ref") or shape["schema"]["oneOf"][0]["$ref"]
                assert types[named.rpartition("/")[2]]["additionalProperties"] is False, path
                body = {**BODIES.get(one["operationId"], {}), "surprise": 1}
                answer = client.request(method, path.replace("{id}", "x"), json=body)
                tried += answer.status_code not in (401, 403)  # those are for service tokens
                assert answer.status_code in (400, 401, 403), path
                assert answer.status_code != 400 or "surprise" in answer.text
    assert tried >= 8


def operations_of(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}


async def test_the_document_names_every_route_and_no_other(parts: Parts, document: dict[str, Any]) -> None:
    callers = Callers(identity_mode="development", edge_secret="", metrics=Metrics(CollectorRegistry()))
    app = framework_app(parts.library, callers)
    routes = {(route.path_format, method) for route in app.routes for method in route.methods}
    served = {(path, method) for path, method in routes if method != "OPTIONS" and path not in {*PATHS, *PAGES}}
    assert served == operations_of(document)


def test_each_operation_has_an_id_a_description_and_errors_in_one_shape(document: dict[str, Any]) -> None:
    found = [one for methods in document["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in found]
    assert len(set(ids)) == len(ids)
    assert all(one["summary"] and one["description"] for one in found)
    refusals = [
        answer["content"]["application/json"]["schema"]["$ref"]
        for one in found
        if one["tags"] != ["health"]
        for status, answer in one["responses"].items()
        if status >= "400"
    ]
    assert len(refusals) > 200
    assert set(refusals) == {"#/components/schemas/ErrorBody"}


def test_the_document_says_who_may_call(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert {name for way in document["security"] for name in way} == set(schemes) == {"user", "userInQuery", "token"}
    ways = {path: methods["get"].get("security") for path, methods in document["paths"].items() if "get" in methods}
    assert {path for path, way in ways.items() if way == [{}]} == {"/health", "/healthz"}
    of_operators = {f"/v1/memory/operator/{name}" for name in OPERATORS}
    assert {path for path, way in ways.items() if way == [{"token": []}]} == of_operators
