"""The identity header through a real Envoy: what a client may try with it, and what the filters make of it.

Envoy hands the lines of a repeated header on one by one, and joins nothing; so a comma in a value is part of an id.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from api_shapes import SHAPES
from filter_stack import NOTE, FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.identity import IDENTITY_HEADER, IdentityMode

QUESTION = "What is my cat called?"
pytestmark = pytest.mark.asyncio(loop_scope="module")  # one stack a mode


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["development", "header"])
async def shared(request: pytest.FixtureRequest, shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url, identity=IdentityMode(request.param)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def stack(shared: FilterStack) -> AsyncIterator[FilterStack]:
    async with shared.lent() as lent:
        yield lent


async def ask(stack: FilterStack, *values: bytes, name: str = IDENTITY_HEADER) -> str:
    """The memory status of a question with one header line for each value; "" where memory had no part in it.

    It is asked through each API, and must get the same from all.
    """
    lines = [(b"content-type", b"application/json"), *((name.encode(), value) for value in values)]
    seen = set()
    for shape in SHAPES:
        body = json.dumps(shape.body([{"role": "user", "content": QUESTION}])).encode()
        async with stack.client() as client:
            answer = await client.post(shape.shape.path, content=body, headers=lines)
        assert answer.status_code == 200
        seen.add(answer.headers.get("x-memory-status", ""))
    [status] = seen
    return status


async def test_two_lines_that_differ_name_nobody_and_are_learnt_for_nobody(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    for values in ((b"alice", b"bob"), (b"bob", b"alice"), (b"alice", b""), (b"alice", b"alice", b"bob")):
        assert await ask(stack, *values) == "", values
        assert not [one for one in upstream.received[-len(SHAPES) :] if NOTE.encode() in one.body]
    assert await ask(stack, b"alice", b"bob", name="X-Authz-User-Id") == ""
    assert stack.recall.asked == []
    assert stack.count("memproxy_identity_refused_total", reason="several_headers") >= 5 * len(SHAPES)
    for user in ("alice", "bob", "alice,bob", "alice, bob", "bob,alice", "alice,"):
        assert await stack.turns(user) == []


async def test_the_same_line_twice_is_one_and_a_comma_is_part_of_an_id(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    for values in ((b"carol", b"carol"), (b"carol,dave",), (b"carol, dave",)):
        assert await ask(stack, *values) == "used"
    assert [scope.user_id for scope, _ in stack.recall.asked[:: len(SHAPES)]] == ["carol", "carol,dave", "carol, dave"]
    assert len(stack.recall.asked) == 3 * len(SHAPES)
