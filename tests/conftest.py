"""Fixtures that start real parts, shared by the tests of the whole way."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from milvus_kinds import MILVUS_KINDS, RealMilvus, real_milvus
from milvus_lite_server import MilvusLiteServer
from milvus_standalone import SERVER_IN_SOAK, MilvusServer
from product import OFF_ROUTE, TRUSTED_PAGE, Product, running_product
from trace_collector import TraceCollector, running_collector
from upstream import RecordingUpstream, running_upstream

from memory.runtime import offload

pytest_plugins = ("tiers", "left_behind")
settings.register_profile("suite", deadline=None, derandomize=True)  # no clock, and each run draws the same
settings.load_profile("suite")
COLLECTIONS = itertools.count()
ROOT = Path(__file__).resolve().parents[1]
# Fixtures that are a product in one configuration. What uses one of them runs in one process: it starts once.
PRODUCTS = ("shared_product", "edge_product")


@pytest.fixture(scope="session", autouse=True)
def _ended_with_the_tests() -> Iterator[None]:
    """The process that looks through long texts, which otherwise ends with the interpreter."""
    yield
    offload._process().close()


@pytest.hookimpl(tryfirst=True)  # before tiers select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: products, then modules that hold something slow."""
    for item in items:
        if "milvus_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.soak(SERVER_IN_SOAK))
    slow = {item.path for item in items if any(item.get_closest_marker(name) for name in ("full", "slow"))}
    items.sort(key=lambda item: _place(group_of(item.nodeid), is_slow=item.path in slow))


def _place(group: str, *, is_slow: bool) -> int:
    return PRODUCTS.index(group) if group in PRODUCTS else len(PRODUCTS) + (not is_slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Each module runs in one process, for what its tests share; so do all modules that share a product."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


@cache
def group_of(nodeid: str) -> str:
    """The module, or the fixture of `PRODUCTS` that it uses."""
    module = nodeid.partition("::")[0]
    words = set(re.findall(r"\w+", (ROOT / module).read_text(encoding="utf-8")))
    return next((name for name in PRODUCTS if name in words), module)


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A command sets up the log of its process, in tests on a stream that ends with the test."""
    handlers = logging.getLogger().handlers[:]
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


@pytest.fixture(scope="session", autouse=True)
def _one_certificate_authority() -> Iterator[None]:
    """No test talks to the outside. Each HTTP client, here and in what is started, reads one instead of 150 of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(ROOT / "tests" / "data" / "tls" / "localhost.pem"))
        yield


@pytest.fixture(scope="session")
def milvus_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLiteServer]:
    """One server for all tests that do not break it: each uses a `collection` of its own."""
    server = MilvusLiteServer(tmp_path_factory.mktemp("milvus") / "data")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def milvus_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    """One real server for all tests that do not break it."""
    server = MilvusServer(tmp_path_factory.mktemp("milvus_server"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=MILVUS_KINDS)
def milvus(request: pytest.FixtureRequest) -> RealMilvus:
    """Of either kind, for what holds on both."""
    return real_milvus(request, request.param)


@pytest.fixture
def collection() -> str:
    """A name that no other test has."""
    return f"c{next(COLLECTIONS)}"


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[RecordingUpstream]:
    with running_upstream() as upstream:
        yield upstream


@pytest.fixture(scope="session")
def trace_collector() -> Iterator[TraceCollector]:
    """Gets the spans of `shared_product`."""
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="session")
def shared_product(
    shared_upstream: RecordingUpstream, trace_collector: TraceCollector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """One product for all tests that leave it whole: each test uses users of its own.

    As by default, but for what only shows where it is asked for: traces, a route without memory, a trusted page.
    """
    folder = tmp_path_factory.mktemp("product")
    tracing = {"endpoint": trace_collector.url, "sample_ratio": 1.0}
    memory = {"off_routes": [f"{OFF_ROUTE}/"], "identity": {"trusted_origins": [TRUSTED_PAGE]}}
    settings = {"tracing": tracing, "memory": memory}
    (folder / "settings.yaml").write_text(json.dumps(settings))
    with running_product(folder / "data", upstream=shared_upstream.url, config=folder / "settings.yaml") as product:
        yield product


@pytest.fixture
def upstream(shared_upstream: RecordingUpstream) -> Iterator[RecordingUpstream]:
    """The shared upstream with its default behaviour, for this test and for whoever comes after it."""
    shared_upstream.behave()
    yield shared_upstream
    shared_upstream.behave()
