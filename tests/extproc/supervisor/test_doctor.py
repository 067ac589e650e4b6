"""What the doctor says of a run that is to start, and all of `memproxy doctor` on set-ups that are well and broken."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from milvus_lite_server import MilvusLiteServer
from postgres_server import own_postgres_server
from prometheus_client import CollectorRegistry
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from turn_logs import a_turn
from typer.testing import CliRunner

from extproc.cli import memproxy
from extproc.supervisor.locks_and_ports import data_directory
from extproc.supervisor.rolling_restart import STATE_FILE
from extproc.supervisor.startup_findings import envoy_finding, ports_finding, up_finding
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.model import TurnStatus
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.disk_findings import file_system_of
from memory.processes.doctor_checks import clock_finding
from memory.processes.findings import Finding, Level
from memory.runtime.metrics import Metrics
from memory.runtime.release import RUNNING, Release
from memory.settings import Settings
from memory.settings.loader import load

ALWAYS = {"embedding model", "trained reader", "data directory"}  # not prepared, nearly full
NO_KEYS = json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "x": "AA", "y": "AA"}]})
REFUSED = ["refuses its configuration: Provider", "invalid local jwks"]


@dataclass
class SetUp:
    """A configuration and the folder of its data. All is well but for models, which are not prepared: a warning."""

    folder: Path
    written: dict[str, Any]

    def settings(self, **more: Any) -> Settings:
        self.written |= more
        (self.folder / "settings.yaml").write_text(json.dumps(self.written))
        return load(self.folder / "settings.yaml", {}, {})

    def examine(self, **more: Any) -> tuple[int, dict[str, dict[str, str]]]:
        """The exit code of the command, and what it says by check."""
        self.settings(**more)
        words = ["doctor", "--json", "--config", str(self.folder / "settings.yaml")]
        done = CliRunner().invoke(memproxy, words, catch_exceptions=False)
        return done.exit_code, {one["check"]: one for one in json.loads(done.stdout)["checks"]}


@pytest.fixture
def set_up(tmp_path: Path) -> SetUp:
    (tmp_path / "data").mkdir()
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    return SetUp(tmp_path, {"data_dir": str(tmp_path / "data"), "models_dir": str(tmp_path / "models"), **ports})


def says(found: Finding, level: Level, *words: str) -> bool:
    assert (found.level, [word for word in words if word not in found.says + found.advice]) == (level, []), found
    return True


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_that_is_taken_or_given_twice_fails_with_who_has_it(set_up: SetUp, taken: int) -> None:
    assert says(ports_finding(set_up.settings()), Level.OK, "free: port any")
    assert says(ports_finding(set_up.settings(api_port=taken)), Level.FAIL, "api_port", "in use", f"pid {os.getpid()}")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    twice = ports_finding(set_up.settings(api_port=0, port=free, metrics_port=free))
    assert says(twice, Level.FAIL, f"port {free}", f"metrics_port {free} is given twice")
    with data_directory(set_up.folder / "data"):
        assert says(ports_finding(set_up.settings()), Level.OK, f"pid {os.getpid()}", "has them")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"identity": "header", "trusted_peers": []}, ["needs trusted_peers"]),
        ({"identity": "jwt", "jwt": {"issuer": "i", "jwks_file": "/none.json"}}, ["jwt.jwks_file", "none.json"]),
        ({"identity": "jwt", "jwt": {"issuer": "i", "audiences": ["chat"], "jwks": NO_KEYS}}, REFUSED),
    ],
    ids=["nobody is trusted", "no keys", "keys that Envoy refuses"],
)
def test_a_configuration_that_envoy_refuses_fails(set_up: SetUp, written: dict[str, Any], words: list[str]) -> None:
    assert says(envoy_finding(set_up.settings(**written)), Level.FAIL, *words)


def test_an_up_of_another_release_than_the_installed_one_is_named(set_up: SetUp) -> None:
    settings, folder = set_up.settings(), set_up.folder / "data"
    assert says(up_finding(settings, RUNNING), Level.OK, "none runs")
    with data_directory(folder):
        assert says(up_finding(settings, RUNNING), Level.OK, "is not ready")
        state = {"pid": os.getpid(), "state": "idle", "release": {"version": "0.0.9"}}
        (folder / STATE_FILE).write_text(json.dumps(state))
        assert says(up_finding(settings, RUNNING), Level.WARN, "0.0.9", "stop it and start it again")
        assert says(up_finding(settings, Release("0.0.9")), Level.OK, "0.0.9")
        (folder / STATE_FILE).write_text(json.dumps({"pid": os.getpid(), "state": "idle"}))
        assert says(up_finding(settings, RUNNING), Level.WARN, "an unknown release")


@pytest.mark.parametrize(
    ("newest", "there", "level", "words"),
    [
        (1_000.0, 999.0, Level.OK, ["agrees with postgres"]),
        (None, 1_000.0, Level.OK, ["agrees with postgres"]),
        (4_600.0, 1_000.0, Level.WARN, ["3600 s after", "went back", "correct the clock"]),
        (1_000.0, 8_200.0, Level.WARN, ["7200 s behind that of postgres", "synchronise"]),
        (1_000.0, 900.0, Level.WARN, ["100 s ahead of that of postgres", "synchronise"]),
    ],
)
async def test_a_wrong_clock_is_a_warning(newest: float | None, there: float, level: Level, words: list[str]) -> None:
    async def newest_turn_at() -> float | None:
        return newest

    async def server_time() -> float:
        return there

    state: Any = SimpleNamespace(where="postgres", newest_turn_at=newest_turn_at, server_time=server_time)
    assert says(await clock_finding(Settings(), state, now=1_000.0), level, *words)


def test_a_set_up_that_is_well_needs_nothing(set_up: SetUp, milvus_lite: MilvusLiteServer, collection: str) -> None:
    async def models(_: Request) -> Response:
        return JSONResponse({"data": [{"id": "small"}]})

    with ExitStack() as stack:
        postgres = stack.enter_context(own_postgres_server())
        port = stack.enter_context(served(Starlette(routes=[Route("/v1/models", models), Route("/", models)])))
        upstream, milvus = f"http://127.0.0.1:{port}", {"collection": collection}
        code, found = set_up.examine(
            database_url=postgres.url, upstream=upstream, milvus_uri=milvus_lite.uri, memory={"milvus": milvus}
        )
    suspects = {name for name, one in found.items() if one["level"] != "ok"}
    assert (code, suspects - ALWAYS - {"reader"}) == (0, set()), found  # the model has not sat its exam
    assert found["turn log"]["says"] == postgres.url
    assert found["queue"]["says"].startswith("0 turns wait")
    assert found["clock"]["says"] == f"agrees with {postgres.url} and {upstream}"
    assert found["ports"]["says"].startswith("free: port any")
    assert "accepts its configuration" in found["envoy"]["says"]


def test_the_command_names_the_cause_of_all_that_is_broken_and_blames_nothing_else(
    set_up: SetUp, milvus_lite: MilvusLiteServer, collection: str, taken: int
) -> None:
    async def create() -> None:
        address = MilvusAddress(milvus_lite.uri, collection, dimension=8)
        async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
            await store.prepare()
        async with SqliteDatabase(set_up.folder / "data" / "turns.sqlite") as database:
            log = SqlTurnLog(database, clock=lambda: SYSTEM_CLOCK() + 3_600)
            await log.append(replace(a_turn("t"), at=SYSTEM_CLOCK(), status=TurnStatus.CLOSED))

    asyncio.run(create())
    code, found = set_up.examine(
        api_port=taken, milvus_uri=milvus_lite.uri, memory={"milvus": {"collection": collection}}
    )
    assert code == 1
    told = {name: one["says"] + one["advice"] for name, one in found.items() if one["level"] != "ok"}
    assert told.keys() - ALWAYS == {"ports", "milvus", "clock"}
    for name, words in (("ports", ["in use"]), ("milvus", ["8 numbers", "makes 384", "reembed"]), ("clock", ["back"])):
        assert all(word in told[name] for word in words), told


def test_the_file_system_of_a_folder_is_that_of_its_nearest_mount() -> None:
    mounts = "overlay / overlay rw 0 0\n/dev/sdb /srv/my\\040disk ext4 rw 0 0\ntmpfs /srv/bob tmpfs rw 0 0\n"
    mounts += "/dev/sdc /srv/bob xfs rw 0 0\nbroken\n"
    kinds = {"/var/lib": "overlay", "/srv/my disk/data": "ext4", "/srv/bob": "xfs", "/srvs": "overlay"}
    assert {folder: file_system_of(Path(folder), mounts) for folder in kinds} == kinds
