"""A library and its REST API, per test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest_asyncio
from api_parts import ANN, api_of
from library_parts import Parts, library_parts
from project_world import ProjectWorld, project_world


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ProjectWorld]:
    async with project_world(tmp_path) as built:
        yield built


@pytest_asyncio.fixture
async def api(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    """Called by ann, in development."""
    async with api_of(parts, headers=ANN) as client:
        yield client
