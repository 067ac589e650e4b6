"""`memproxy doctor` on set-ups that are broken on purpose: it names the cause of each, and blames nothing else."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from redis_nodes import redis_nodes
from redis_server import own_redis_server
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from turn_logs import a_turn
from typer.testing import CliRunner

from extproc.cli import memproxy
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.exams import SqliteExamResults
from memory.adapters.sqlite.schema import VERSION
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.learn.reading.exam import exam_version
from memory.model import TurnStatus
from memory.ports.reading import ExamKey, ExamResult
from memory.processes import reader_parts
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.disk_findings import file_system_of
from memory.runtime.metrics import Metrics
from memory.settings.loader import load

Finding = dict[str, str]


@dataclass
class SetUp:
    """A configuration and the folder of its data; what a test starts for it ends with it."""

    folder: Path
    milvus: MilvusLiteServer
    collection: str
    stack: ExitStack
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "settings.yaml"

    @property
    def turn_log(self) -> Path:
        return Path(self.settings["data_dir"]) / "turns.sqlite"

    def examine(self) -> tuple[int, dict[str, Finding]]:
        self.config.write_text(json.dumps(self.settings))
        result = CliRunner().invoke(
            memproxy, ["doctor", "--json", "--config", str(self.config)], catch_exceptions=False
        )
        return result.exit_code, {one["check"]: one for one in json.loads(result.stdout)["checks"]}

    def upstream(self, *, seconds_ahead: float = 0.0) -> None:
        """A server of models whose clock is that much ahead."""

        async def models(_: Request) -> Response:
            at = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(SYSTEM_CLOCK() + seconds_ahead))
            return JSONResponse({"data": [{"id": "small"}]}, headers={"date": at})

        app = Starlette(routes=[Route("/v1/models", models), Route("/", models)])
        port = self.stack.enter_context(served(app, date_header=False))
        self.settings["upstream"] = f"http://127.0.0.1:{port}"


@pytest.fixture
def set_up(tmp_path: Path, milvus_lite: MilvusLiteServer, collection: str) -> Iterator[SetUp]:
    """All is well. Models are not prepared, since loading them takes seconds; that is a warning."""
    (tmp_path / "data").mkdir()
    with ExitStack() as stack:
        made = SetUp(tmp_path, milvus_lite, collection, stack)
        made.settings = {
            "data_dir": str(tmp_path / "data"),
            "models_dir": str(tmp_path / "models"),
            **dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0),
        }
        yield made


def a_port_is_taken(broken: SetUp) -> None:
    listener = broken.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    broken.settings["api_port"] = listener.getsockname()[1]


def two_parts_want_one_port(broken: SetUp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        broken.settings["port"] = broken.settings["metrics_port"] = probe.getsockname()[1]


def the_keys_of_tokens_are_missing(broken: SetUp) -> None:
    broken.settings |= {"identity": "jwt", "jwt": {"issuer": "i", "jwks_file": str(broken.folder / "none.json")}}


def the_keys_of_tokens_are_no_keys(broken: SetUp) -> None:
    keys = {"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "x": "AA", "y": "AA"}]}
    broken.settings |= {"identity": "jwt", "jwt": {"issuer": "i", "audiences": ["chat"], "jwks": json.dumps(keys)}}


def nobody_is_trusted_to_name_users(broken: SetUp) -> None:
    broken.settings |= {"identity": "header", "trusted_peers": []}


def the_upstream_is_away(broken: SetUp) -> None:
    broken.settings["upstream"] = "http://127.0.0.1:1"


def milvus_is_away(broken: SetUp) -> None:
    broken.settings["milvus_uri"] = "http://127.0.0.1:1"


def the_collection_has_another_dimension(broken: SetUp) -> None:
    async def create() -> None:
        address = MilvusAddress(broken.milvus.uri, broken.collection, dimension=8)
        async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
            await store.prepare()

    asyncio.run(create())
    broken.settings |= {"milvus_uri": broken.milvus.uri, "memory": {"milvus": {"collection": broken.collection}}}


def redis_is_away(broken: SetUp) -> None:
    broken.settings["redis_url"] = "redis://127.0.0.1:1"


def redis_forgets(broken: SetUp) -> None:
    server = broken.stack.enter_context(own_redis_server(broken.folder))
    server.set("appendonly", "no")
    broken.settings["redis_url"] = server.url


def redis_is_no_cluster(broken: SetUp) -> None:
    server = broken.stack.enter_context(own_redis_server(broken.folder))
    broken.settings["redis_url"] = server.url.replace("://", "+cluster://", 1)


def redis_is_a_cluster(broken: SetUp) -> None:
    broken.settings["redis_url"] = redis_nodes().servers[1].url


def the_clock_went_back(broken: SetUp) -> None:
    async def an_hour_ahead() -> None:
        async with SqliteDatabase(broken.turn_log) as database:
            await SqliteTurnLog(database, clock=lambda: SYSTEM_CLOCK() + 3_600).append(
                replace(a_turn("t"), at=SYSTEM_CLOCK(), status=TurnStatus.CLOSED)
            )

    asyncio.run(an_hour_ahead())


def the_upstreams_clock_differs(broken: SetUp) -> None:
    broken.upstream(seconds_ahead=7_200)


def the_disk_is_in_memory(broken: SetUp) -> None:
    folder = Path("/dev/shm") / f"memproxy-{broken.collection}-{broken.folder.name}"
    folder.mkdir()
    broken.stack.callback(shutil.rmtree, folder)
    broken.settings["data_dir"] = str(folder)


def the_folder_cannot_be_written(broken: SetUp) -> None:
    """In `/proc` not even root can make a file."""
    broken.settings["data_dir"] = "/proc/self/net"


def a_part_was_not_restarted_after_an_upgrade(broken: SetUp) -> None:
    """Held open by a process that says so, as all parts do."""
    code = (
        "import asyncio, sys; from pathlib import Path; from memory.adapters.sqlite.database import SqliteDatabase\n"
        "from memory.processes.running_parts import introduction; from memory.runtime.release import RUNNING\n"
        "async def hold():\n"
        "    words = introduction('worker').replace(RUNNING.version, '0.0.9')\n"
        "    async with SqliteDatabase(Path(sys.argv[1]), introduction=words):\n"
        "        print('open', flush=True); await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(hold())\n"
    )
    words = [sys.executable, "-c", code, str(broken.turn_log)]
    part = broken.stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    broken.stack.callback(part.kill)
    assert part.stdout is not None
    assert part.stdout.readline() == "open\n"


def a_newer_release_wrote_the_data(broken: SetUp) -> None:
    async def create() -> None:
        async with SqliteDatabase(broken.turn_log):
            pass

    asyncio.run(create())
    with sqlite3.connect(broken.turn_log) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()


def the_turn_log_is_damaged(broken: SetUp) -> None:
    broken.turn_log.write_bytes(b"something else" * 400)


def the_model_failed_the_exam(broken: SetUp) -> None:
    broken.upstream()
    broken.config.write_text(json.dumps(broken.settings))
    settings = load(broken.config, {}, {})

    async def fail() -> None:
        model, endpoint = await reader_parts.examinee(settings)
        metrics = Metrics(CollectorRegistry())
        async with reader_parts.open_model_reader(settings, model, metrics, endpoint=endpoint) as reader:
            key = ExamKey(model.llm_model_name, endpoint, f"{reader.prompt_version}-{exam_version()}")
        async with SqliteDatabase(settings.turn_log_path) as database:
            results = SqliteExamResults(database, clock=SYSTEM_CLOCK)
            await results.put(key, ExamResult(passed=False, score=0.41, failures=("a diet",)))

    asyncio.run(fail())


BROKEN = [
    (a_port_is_taken, "ports", "fail", ["api_port", "in use", "pid"]),
    (two_parts_want_one_port, "ports", "fail", ["port", "metrics_port", "given twice"]),
    (the_keys_of_tokens_are_missing, "envoy", "fail", ["jwt.jwks_file", "none.json"]),
    (the_keys_of_tokens_are_no_keys, "envoy", "fail", ["refuses its configuration: Provider", "invalid local jwks"]),
    (nobody_is_trusted_to_name_users, "identity", "fail", ["nobody", "trusted_peers"]),
    (the_upstream_is_away, "upstream", "warn", ["http://127.0.0.1:1", "start it"]),
    (milvus_is_away, "milvus", "fail", ["milvus", "reached"]),
    (the_collection_has_another_dimension, "milvus", "fail", ["8 numbers", "makes 384", "reembed"]),
    (redis_is_away, "turn log", "fail", ["Redis failed", "can be reached"]),
    (redis_forgets, "turn log", "fail", ["would lose turns", "appendonly must be yes"]),
    (redis_is_no_cluster, "turn log", "fail", ["redis_url", "leave out +cluster"]),
    (redis_is_a_cluster, "turn log", "fail", ["redis_url", "write redis+cluster://"]),
    (the_clock_went_back, "clock", "warn", ["went back", "correct the clock"]),
    (the_upstreams_clock_differs, "clock", "warn", ["behind", "synchronise"]),
    (the_disk_is_in_memory, "data directory", "warn", ["tmpfs", "restarts"]),
    (
        the_folder_cannot_be_written,
        "data directory",
        "fail",
        ["/proc/self/net cannot be written", "name another folder"],
    ),
    (a_part_was_not_restarted_after_an_upgrade, "version", "warn", ["worker (pid", "runs 0.0.9", "memproxy restart"]),
    (a_newer_release_wrote_the_data, "turn log", "fail", [f"version {VERSION + 1}", "memproxy that wrote it"]),
    (the_turn_log_is_damaged, "turn log", "fail", ["turns.sqlite"]),
    (the_model_failed_the_exam, "reader", "warn", ["small failed the exam", "0.41", "a diet", "more capable"]),
]
ALSO = {  # what follows from the same cause
    the_keys_of_tokens_are_missing: {"identity"},
    nobody_is_trusted_to_name_users: {"envoy"},
    the_folder_cannot_be_written: {"turn log"},
}
ALWAYS = {"embedding model", "trained reader", "milvus", "data directory"}  # not prepared, not started, nearly full


@pytest.mark.parametrize(("breaks", "check", "level", "words"), BROKEN, ids=[one[0].__name__ for one in BROKEN])
def test_the_doctor_names_the_cause(set_up: SetUp, breaks: Any, check: str, level: str, words: list[str]) -> None:
    breaks(set_up)
    code, found = set_up.examine()
    assert (code, found[check]["level"]) == (int(level == "fail"), level), found
    told = found[check]["says"] + found[check]["advice"]
    assert [word for word in words if word not in told] == [], told
    suspects = {name for name, one in found.items() if one["level"] != "ok"}
    reader = {"reader"} if "upstream" in set_up.settings else set()  # who reads depends on the upstream
    assert suspects - ALWAYS - ALSO.get(breaks, set()) - reader - {check} == set()


def test_a_set_up_that_is_well_has_nothing_to_correct(set_up: SetUp) -> None:
    code, found = set_up.examine()
    assert (code, {name for name, one in found.items() if one["level"] != "ok"} - ALWAYS) == (0, set())
    assert found["ports"]["says"].startswith("free: port any")
    assert "accepts its configuration" in found["envoy"]["says"]


def test_redis_is_examined_like_a_file(set_up: SetUp) -> None:
    server = set_up.stack.enter_context(own_redis_server(set_up.folder))
    set_up.settings["redis_url"] = server.url
    code, found = set_up.examine()
    assert (code, {name for name, one in found.items() if one["level"] != "ok"} - ALWAYS) == (0, set())
    assert found["turn log"]["says"] == server.url
    assert found["queue"]["says"].startswith("0 turns wait")
    assert found["clock"]["says"] == f"agrees with {server.url}"


def test_the_file_system_of_a_folder_is_that_of_its_nearest_mount() -> None:
    mounts = """overlay / overlay rw 0 0
server:/srv /srv nfs4 rw 0 0
/dev/sdb /srv/ann/my\\040disk ext4 rw 0 0
tmpfs /srv/bob tmpfs rw 0 0
/dev/sdc /srv/bob xfs rw 0 0
broken
"""
    for folder, kind in (
        ("/var/lib", "overlay"),
        ("/srv/eve/data", "nfs4"),
        ("/srv/ann/my disk/data", "ext4"),
        ("/srv/bob", "xfs"),
        ("/srvs", "overlay"),
    ):
        assert file_system_of(Path(folder), mounts) == kind
