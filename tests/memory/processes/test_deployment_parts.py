"""What the API knows of the other parts: who lives beside it, what Envoy sees, whether the upstream answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.processes.deployment_parts import SeenParts
from memory.processes.kept_state import introduction
from memory.settings import Settings

HEALTHY: dict[str, object] = {"eds_health_status": "HEALTHY"}
FAILING: dict[str, object] = {**HEALTHY, "failed_active_hc": True}


@dataclass
class Servers:
    """Envoy's admin page and an upstream, at one address. `filters`: their health status as Envoy has it."""

    port: int = 0
    is_live: bool = True
    filters: list[dict[str, object]] = field(default_factory=lambda: [HEALTHY, HEALTHY])
    models: int = 200


@pytest.fixture
def servers() -> Iterator[Servers]:
    found = Servers()

    async def ready(_: Request) -> Response:
        return Response(status_code=200 if found.is_live else 503)

    async def clusters(_: Request) -> Response:
        hosts = [{"health_status": one} for one in found.filters]
        body = {"cluster_statuses": [{"name": "upstream"}, {"name": "memory_inject", "host_statuses": hosts}]}
        return Response(json.dumps(body))

    async def models(_: Request) -> Response:
        return Response(status_code=found.models)

    routes = [Route("/ready", ready), Route("/clusters", clusters), Route("/v1/models", models)]
    with served(Starlette(routes=routes)) as port:
        found.port = port
        yield found


def settings_for(servers: Servers, **changes: object) -> Settings:
    given = Settings(envoy_admin_port=servers.port, upstream=f"http://127.0.0.1:{servers.port}/v1", filters=2)
    return msgspec.structs.replace(given, **changes)


async def seen_by_the_api(folder: Path, settings: Settings, *others: str) -> dict[str, tuple[str, int | None]]:
    """What the API sees while these parts have the turn log open."""
    path = folder / "turns.sqlite"
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(SqliteDatabase(path, introduction=introduction("api")))
        for part in others:
            await stack.enter_async_context(SqliteDatabase(path, introduction=introduction(part)))

        async def introductions() -> list[str]:
            return await asyncio.to_thread(database.owners.introductions)

        found = await SeenParts(settings, introductions).health()
        return {one.part: (one.reason, one.running) for one in found}


WELL = {"envoy": ("", None), "filter": ("", 2), "worker": ("", 1), "upstream": ("", None)}
NO_ENVOY = {"envoy": ("not_running", None), "worker": ("not_running", 0)}


@pytest.mark.parametrize(
    ("servers_are", "envoy_port", "others", "differing"),
    [
        ({}, 0, ("filter", "filter", "worker", "tool"), {}),
        ({"models": 503}, 0, ("filter", "worker"), {"filter": ("some_missing", 1), "upstream": ("unavailable", None)}),
        ({"filters": [HEALTHY, FAILING]}, 0, ("filter", "filter", "worker"), {"filter": ("not_serving", 1)}),
        ({"is_live": False}, 0, ("filter", "filter"), NO_ENVOY),
        ({"is_live": False}, 1, ("filter", "filter"), NO_ENVOY),  # nobody answers there
    ],
    ids="well missing fails_health_checks envoy_not_live envoy_dead".split(),
)
async def test_what_works_and_what_is_down_or_missing_is_shown_as_that(
    tmp_path: Path,
    servers: Servers,
    servers_are: dict[str, Any],
    envoy_port: int,
    others: tuple[str, ...],
    differing: dict[str, tuple[str, int | None]],
) -> None:
    """Envoy is down where a filter of this host would serve it."""
    for name, value in servers_are.items():
        setattr(servers, name, value)
    settings = settings_for(servers, envoy_admin_port=envoy_port or servers.port)
    assert await seen_by_the_api(tmp_path, settings, *others) == WELL | differing


async def test_of_what_was_never_seen_nothing_is_said_and_an_envoy_that_answered_once_is_down(servers: Servers) -> None:
    async def away() -> list[str]:
        raise Unavailable("turn log", "away")

    parts = SeenParts(settings_for(servers, envoy_admin_port=1, upstream=""), away)
    assert {one.part: one.is_ok for one in await parts.health()} == dict.fromkeys(WELL)
    parts = SeenParts(settings_for(servers), away)
    for is_live, reason in ((True, ""), (False, "not_running")):
        servers.is_live = is_live
        assert [one.reason for one in await parts.health() if one.part == "envoy"] == [reason]
