"""Parts of a product with two filters, two workers and PostgreSQL are restarted or killed while chats run.

No chat fails, and all are recorded. In soak also: none goes without memory but those that Envoy had sent to a filter
that was killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from chat_load import ChatLoad, chatting
from postgres_server import PostgresServer
from product import Product, eventually, with_pid
from two_of_each import is_whole, kept_of, running_two_of_each
from upstream import RecordingUpstream, running_upstream
from whole_lives import assert_a_project_is_erased

from memory.runtime.release import RUNNING

pytestmark = pytest.mark.full("a product with two filters and two workers on PostgreSQL")
MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
OLD = "0.0.9"
FACT = "My locker at the pool has the number 117."
QUESTION = "What number has my locker at the pool?"
USERS = tuple(f"swimmer-{number}" for number in range(4))
LOAD_SECONDS = 1.0  # of chats before and after what happens to a part, so that there are some to judge by
RESTARTED = ("memproxy filter", "memproxy worker", "memproxy api", "milvus-lite server")


@dataclass(frozen=True, slots=True)
class TwoOfEach:
    product: Product
    postgres: PostgresServer
    upstream: RecordingUpstream


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoOfEach]:
    """Started by an older release, which is today's code under an older version's name, as installers leave it."""
    folder = tmp_path_factory.mktemp("two")
    metadata = folder / "site" / f"memproxy-{OLD}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: memproxy\nVersion: {OLD}\n")
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    with running_upstream() as upstream, pytest.MonkeyPatch.context() as patch:
        upstream.chunk_seconds, upstream.chunk_count = 0.1, 12  # streams that outlast a health check
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "site"), inherited.get("PYTHONPATH", "")]))
        with running_two_of_each("postgres", folder / "data", upstream=upstream.url) as (product, postgres):
            metadata.unlink()
            metadata.parent.rmdir()  # from now on today's version is what is installed
            assert postgres is not None
            for user in USERS:
                assert product.chat(FACT, user).status_code == 200
                assert product.flush(user)["pending"] == 0
            yield TwoOfEach(product, postgres, upstream)


@pytest.fixture
def product(two: TwoOfEach) -> Product:
    return two.product


def warm(product: Product) -> None:
    """Both filters hold the users, as they do when these talk."""
    eventually(lambda: is_whole(product))
    for user in USERS:
        for _ in range(6):
            assert product.ask(QUESTION, user).headers["x-memory-status"] == "used"


def is_recorded(product: Product, load: ChatLoad, before: Mapping[str, int]) -> None:
    """Every chat is in the record, with its answer."""
    for user in USERS:
        wanted = before[user] + sum(chat.user == user for chat in load.chats)
        eventually(lambda user=user, wanted=wanted: kept_of(product, user).closed.total() >= wanted)


def is_remembering(load: ChatLoad, *, none_max: int = 0) -> None:
    """All but so many got a note. Recall itself may be too late now and then, and says so."""
    seen = load.memory_of()
    late = seen.pop("unavailable", 0)
    assert late <= max(1, len(load.chats) // 100), f"{late} of {len(load.chats)} were too late"
    assert seen["none"] <= none_max, load.without_memory()
    assert set(seen) <= {"used", "none"}, seen


def restarted_under_load(product: Product) -> ChatLoad:
    """What clients saw meanwhile: every chat and call was answered, and every chat is on record."""
    warm(product)
    before = {part: set(product.children(part)) for part in RESTARTED}
    known = {user: kept_of(product, user).closed.total() for user in USERS}
    command = [MEMPROXY, "restart", "--json", "--data-dir", str(product.data_dir)]
    with chatting(product, QUESTION, USERS, pause_seconds=0.2) as load, asking_the_api(product) as answers:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["state"] == "done"
    assert [line.split()[-1] for line in ended.stderr.splitlines() if line.startswith("restarting")] == [
        *("filter-0", "filter-1", "worker-0", "worker-1", "api", "milvus")
    ]
    for part, pids in before.items():
        assert set(product.children(part)).isdisjoint(pids), f"{part} was not restarted"
    assert load.failures == {}
    assert set(answers) == {200}
    is_recorded(product, load, known)
    return load


@contextmanager
def asking_the_api(product: Product) -> Iterator[list[int]]:
    """Calls of REST through the proxy, one after the other; their statuses."""
    statuses, stop = [], threading.Event()

    def ask() -> None:
        with httpx.Client(timeout=60, trust_env=False) as client:
            while not stop.wait(0.1):
                answer = client.get(f"{product.url}/v1/memory/receipts", params={"user_id": USERS[0], "limit": 1})
                statuses.append(answer.status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        thread.join()


def test_a_rolling_restart_fails_no_chat_and_renews_the_parts_of_an_older_release(
    two: TwoOfEach, tmp_path: Path
) -> None:
    """Somebody upgraded and did not restart: until they do, the doctor names every part of the old release."""
    found = doctor_on(two, tmp_path)
    old = sorted(re.findall(rf"(\w+) \(pid \d+\) runs {re.escape(OLD)}", found["version"]["says"]))
    assert (found["version"]["level"], set(old)) == ("warn", {"api", "filter", "worker"})
    assert f"{RUNNING} is installed" in found["version"]["says"]
    assert (found["memproxy up"]["level"], OLD in found["memproxy up"]["says"]) == ("warn", True)
    restarted_under_load(two.product)
    found = doctor_on(two, tmp_path)
    assert found["version"]["says"] == f"{RUNNING}, run by 1 api, 2 filter, 2 worker"
    assert "`memproxy restart` renews its parts only" in found["memproxy up"]["advice"]


def doctor_on(two: TwoOfEach, folder: Path) -> dict[str, dict[str, str]]:
    """As a shell starts it, with what is installed by then."""
    config = folder / "doctor.yaml"
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    state = {"data_dir": str(two.product.data_dir), "database_url": two.postgres.url}
    config.write_text(json.dumps({**state, "models_dir": str(folder / "models"), **ports}))
    ended = subprocess.run(
        [MEMPROXY, "doctor", "--json", "--config", str(config)], capture_output=True, text=True, timeout=120
    )
    return {one["check"]: one for one in json.loads(ended.stdout)["checks"]}


def test_a_call_over_a_connection_that_was_open_when_the_api_was_stopped_is_answered(product: Product) -> None:
    """As of a client that keeps connections, whose next call is on its way."""
    [stopped] = product.children("memproxy api")
    with socket.create_connection(("127.0.0.1", product.ports["api"]), timeout=30) as connection:
        with_pid(stopped, signal.SIGTERM)
        eventually(lambda: refuses_connections(product.ports["api"]), every=0.01)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: api\r\n\r\n")
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")
    eventually(lambda: product.children("memproxy api") not in ([], [stopped]))
    eventually(lambda: not refuses_connections(product.ports["api"]))


def refuses_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionError:
        return True
    return False


def test_of_a_project_that_is_erased_no_byte_is_left_in_the_tables(two: TwoOfEach) -> None:
    assert_a_project_is_erased(two.product, two.upstream, files=two.postgres.table_files())


@pytest.mark.soak("no chat may wait a second for its memory")
def test_a_rolling_restart_leaves_no_chat_without_memory(product: Product) -> None:
    is_remembering(restarted_under_load(product))


@pytest.mark.soak("judges what happened within a second")
def test_a_killed_filter_costs_memory_only_for_what_it_was_working_on(product: Product) -> None:
    warm(product)
    victim = product.children("memproxy filter")[0]
    with chatting(product, QUESTION, USERS) as load:
        time.sleep(LOAD_SECONDS)
        with_pid(victim, signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(2 * LOAD_SECONDS)
        eventually(lambda: is_whole(product))
    assert load.failures == {}
    is_remembering(load, none_max=len(USERS))
    assert all(abs(chat.began - killed) < 1 for chat in load.without_memory() if chat.memory == "none")
