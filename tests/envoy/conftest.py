"""One Envoy with a filter for all tests that neither break it nor want it set up in another way; products at edges."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from edge_gateway import MODES, Edge, running_edge
from filter_stack import FilterStack, running_stack
from upstream import RecordingUpstream


@pytest.fixture(scope="session", params=MODES)
def edge_product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_upstream: RecordingUpstream
) -> Iterator[Edge]:
    """A product for each mode in which the edge identifies users: each test uses users of its own."""
    with running_edge(request.param, tmp_path_factory.mktemp("edge"), upstream=shared_upstream.url) as edge:
        yield edge


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_stack(shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    async with running_stack(shared_upstream.url) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="session")
async def stack(shared_stack: FilterStack, upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    """Its filter lives in the loop of the session: so must the tests (`asyncio(loop_scope="session")`), also those of a
    module with a `shared_stack` of its own.

    Each uses users of its own where it looks at turns.
    """
    async with shared_stack.lent() as lent:
        yield lent
