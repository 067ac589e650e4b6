"""The identity header through a real Envoy: what a client may try with it, and what the filters make of it.

Envoy hands the lines of a repeated header on one by one, and joins nothing; so a comma in a value is part of an id.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from filter_stack import NOTE, FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.identity import IDENTITY_HEADER, IdentityMode

QUESTION = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}).encode()
pytestmark = pytest.mark.asyncio(loop_scope="module")  # one stack a mode


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["development", "header"])
async def stack(request: pytest.FixtureRequest, shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url, identity=IdentityMode(request.param)) as running:
        yield running


async def ask(stack: FilterStack, *values: bytes, name: str = IDENTITY_HEADER) -> str:
    """The memory status of a question with one header line for each value; "" where memory had no part in it."""
    lines = [(name.encode(), value) for value in values]
    async with stack.client() as client:
        answer = await client.post(
            "/v1/chat/completions", content=QUESTION, headers=[(b"content-type", b"application/json"), *lines]
        )
    assert answer.status_code == 200
    return answer.headers.get("x-memory-status", "")


async def test_two_lines_that_differ_name_nobody_and_are_learnt_for_nobody(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    stack.begin()
    for values in ((b"alice", b"bob"), (b"bob", b"alice"), (b"alice", b""), (b"alice", b"alice", b"bob")):
        assert await ask(stack, *values) == "", values
        assert NOTE not in upstream.last_chat().system_text()
    assert await ask(stack, b"alice", b"bob", name="X-Authz-User-Id") == ""
    assert stack.recall.asked == []
    assert stack.count("memproxy_identity_refused_total", reason="several_headers") >= 5
    for user in ("alice", "bob", "alice,bob", "alice, bob", "bob,alice", "alice,"):
        assert await stack.turns(user) == []


async def test_the_same_line_twice_is_one_and_a_comma_is_part_of_an_id(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    stack.begin()
    for values in ((b"carol", b"carol"), (b"carol,dave",), (b"carol, dave",)):
        assert await ask(stack, *values) == "used"
    assert [scope.user_id for scope, _ in stack.recall.asked] == ["carol", "carol,dave", "carol, dave"]
