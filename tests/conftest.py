"""Fixtures that start real parts, shared by the tests of the whole way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from milvus_lite_server import MilvusLiteServer
from product import Product, running_product
from upstream import RecordingUpstream, running_upstream

COLLECTIONS = itertools.count()


@pytest.fixture(scope="session")
def milvus_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLiteServer]:
    """One server for all tests that do not break it: each uses a `collection` of its own."""
    server = MilvusLiteServer(tmp_path_factory.mktemp("milvus") / "data")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def collection() -> str:
    """A name that no other test has."""
    return f"c{next(COLLECTIONS)}"


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[RecordingUpstream]:
    with running_upstream() as upstream:
        yield upstream


@pytest.fixture(scope="session")
def shared_product(shared_upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One product for all tests that do not break it: each test uses users of its own."""
    data_dir = tmp_path_factory.mktemp("product") / "data"
    with running_product(data_dir, upstream=shared_upstream.url) as product:
        yield product


@pytest.fixture
def upstream(shared_upstream: RecordingUpstream) -> Iterator[RecordingUpstream]:
    """The shared upstream with its default behaviour, for this test and for whoever comes after it."""
    shared_upstream.behave()
    yield shared_upstream
    shared_upstream.behave()
