"""One Envoy with a filter for all tests that neither break it nor want it set up in another way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from filter_stack import FilterStack, running_stack
from upstream import RecordingUpstream


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_stack(shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="session")
async def stack(shared_stack: FilterStack, upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    """Its filter lives in the loop of the session: so must the tests (`asyncio(loop_scope="session")`).

    Each uses users of its own where it looks at turns.
    """
    async with shared_stack.lent() as lent:
        yield lent
