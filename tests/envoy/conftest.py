"""One Envoy with a filter for all tests that neither break it nor want it set up in another way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest_asyncio
from filter_stack import FilterStack, running_stack
from upstream import RecordingUpstream

CHECK_SECONDS_MAX = 1.1  # what Envoy waits for the answer to a health check, and a little


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_stack(shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="session")
async def stack(shared_stack: FilterStack, upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    """Its filter lives in the loop of the session: so must the tests (`asyncio(loop_scope="session")`).

    Each uses users of its own where it looks at turns.
    """
    if time.monotonic() - shared_stack.used_at > CHECK_SECONDS_MAX:  # the loop stood still: a check may just be failing
        await asyncio.sleep(CHECK_SECONDS_MAX)
    await shared_stack.wait_for_filters(1)
    shared_stack.begin()
    yield shared_stack
    shared_stack.used_at = time.monotonic()
