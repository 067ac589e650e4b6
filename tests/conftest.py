"""Fixtures that start real parts, shared by the tests of the whole way."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from milvus_kinds import MILVUS_KINDS, RealMilvus, real_milvus
from milvus_lite_server import MilvusLiteServer
from milvus_standalone import MILVUS_SERVER, MilvusServer
from product import Product, running_product
from upstream import RecordingUpstream, running_upstream

pytest_plugins = ("all_parts",)
COLLECTIONS = itertools.count()
PRODUCT = "product"
SERVED: list[MilvusServer] = []  # the one that runs for the tests of its group
ROOT = Path(__file__).resolve().parents[1]
WITH_REASON = ("slow", "alone")
SERVER_ALONE = "a Milvus server keeps both cores busy: beside it, other tests miss their times, and it misses its own"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="parts fail for minutes, and random lives are more")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: the product, then modules that hold something slow."""
    for item in items:
        if group_of(item.nodeid) == MILVUS_SERVER:
            item.add_marker(pytest.mark.alone(SERVER_ALONE))
        for name in WITH_REASON:
            mark = item.get_closest_marker(name)
            if mark is not None and not mark.args:
                raise pytest.UsageError(f"{item.nodeid} is marked {name} without a reason")
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    groups = {PRODUCT: 0, MILVUS_SERVER: 1}
    items.sort(key=lambda item: groups.get(group_of(item.nodeid), 2 if item.path in slow else 3))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The Milvus server ends with the last test that needs it, since it takes a gigabyte."""
    if nextitem is None or group_of(nextitem.nodeid) != MILVUS_SERVER:
        while SERVED:
            SERVED.pop().kill()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Each module runs in one process, for what its tests share."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


@cache
def is_of_product(module: str) -> bool:
    return "from product import" in (ROOT / module).read_text(encoding="utf-8")


@cache
def is_of_milvus_server(module: str) -> bool:
    return "milvus_server: MilvusServer" in (ROOT / module).read_text(encoding="utf-8")


def group_of(nodeid: str) -> str:
    """The module, or `PRODUCT`: of two whole products at once, each would be measured by what the other leaves it.

    Or `MILVUS_SERVER`, for all that needs one: each process that does would have to start its own.
    """
    module, _, name = nodeid.partition("::")
    if MILVUS_SERVER in name or is_of_milvus_server(module):
        return MILVUS_SERVER
    return PRODUCT if is_of_product(module) else module


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


@pytest.fixture
def milvus_server(tmp_path_factory: pytest.TempPathFactory) -> MilvusServer:
    """One real server for all tests that do not break it; see `group_of`."""
    if not SERVED:
        SERVED.append(MilvusServer(tmp_path_factory.mktemp("milvus_server")))
    if not SERVED[0].is_running:
        SERVED[0].start()
    return SERVED[0]


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
def shared_product(shared_upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One product for all tests that leave it whole: each test uses users of its own."""
    data_dir = tmp_path_factory.mktemp("product") / "data"
    with running_product(data_dir, upstream=shared_upstream.url) as product:
        yield product


@pytest.fixture
def upstream(shared_upstream: RecordingUpstream) -> Iterator[RecordingUpstream]:
    """The shared upstream with its default behaviour, for this test and for whoever comes after it."""
    shared_upstream.behave()
    yield shared_upstream
    shared_upstream.behave()
