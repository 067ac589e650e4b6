"""What the contract suites run on: stores in memory, on Milvus Lite and on a server; turn logs in SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from memory_rows import DIMENSION
from milvus_kinds import MILVUS_KINDS, PATIENT, empty_address, prepared, real_milvus
from prometheus_client import CollectorRegistry
from turn_logs import Deployment, Process, adapters, deployment_on

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.store import MilvusStore
from memory.ports import MemoryStore, TurnLog
from memory.runtime.metrics import Metrics


@pytest.fixture(params=["in memory", *MILVUS_KINDS])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    """An empty store."""
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    address = empty_address(real_milvus(request, request.param), request.getfixturevalue("collection"), DIMENSION)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as milvus:
        yield await prepared(milvus)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A suite runs on every adapter."""
    if "deployment" in metafunc.fixturenames:
        metafunc.parametrize("deployment", adapters(), indirect=True)


@pytest.fixture
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Every adapter of the turn log."""
    return deployment_on(request.param, tmp_path)


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    """One that runs on it."""
    async with deployment.start() as started:
        yield started


@pytest.fixture
async def other(deployment: Deployment) -> AsyncIterator[Process]:
    """Another one, at the same time."""
    async with deployment.start() as started:
        yield started


@pytest.fixture
def log(process: Process) -> TurnLog:
    return process.log
