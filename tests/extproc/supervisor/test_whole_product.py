"""The contract of `memproxy up`, with all real parts: what runs, what listens, and what is refused at a start."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest
from postgres_server import postgres_server
from product import Product, command_line, listening

from extproc.supervisor.locks_and_ports import CannotStart
from extproc.supervisor.supervisor import claimed
from memory.settings import Settings

MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
FREE_PORTS = ("--port=0", "--api-port=0", "--envoy-admin-port=0", "--metrics-port=0")


@pytest.fixture
def product(shared_product: Product) -> Product:
    return shared_product


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a start says that must not succeed."""
    ended = subprocess.run([MEMPROXY, "up", *arguments], capture_output=True, text=True, timeout=60, env=environment)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    return ended.stderr


def test_every_part_is_recognised_by_its_command_line_and_none_shows_a_secret(product: Product) -> None:
    for part in ("envoy", "milvus-lite server", "memproxy filter", "memproxy worker", "memproxy api"):
        assert product.children(part), part
    environment = Path(f"/proc/{product.children('memproxy api')[0]}/environ").read_bytes().decode().split("\0")
    [secret] = [word.partition("=")[2] for word in environment if word.startswith("MEMPROXY_EDGE_SECRET=")]
    assert len(secret) >= 32
    assert not [pid for pid in product.children() if secret in command_line(pid)]
    files = [path for path in product.run_folder.iterdir() if path.is_file()]
    assert not [path.name for path in files if secret in path.read_text(errors="replace")]


def test_the_ports_file_names_ports_that_answer(product: Product) -> None:
    assert set(product.ports) == {"proxy", "api", "envoy_admin", "metrics", "milvus"}
    for port in filter(None, product.ports.values()):
        with socket.create_connection(("127.0.0.1", port), timeout=30):
            pass


def test_nothing_of_ours_listens_beyond_loopback(product: Product) -> None:
    assert product.process is not None
    addresses = listening([product.process.pid, *product.children()])
    assert addresses
    assert [(str(host), port) for host, port in addresses if not host.is_loopback] == []


def test_the_worker_steps_back_behind_the_request_path(product: Product) -> None:
    def niceness(part: str) -> int:
        return os.getpriority(os.PRIO_PROCESS, product.children(part)[0])

    assert niceness("memproxy filter") < niceness("memproxy worker")


def test_one_page_holds_the_metrics_of_all_parts(product: Product) -> None:
    product.chat("Which colour has my shed?", "early bird")
    page = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text
    for part in ("envoy", "filter-0", "worker-0", "api", "milvus"):
        assert f'memproxy_part_up{{part="{part}"}} 1.0' in page
        [seconds] = re.findall(rf'^memproxy_part_start_seconds{{part="{part}"}} (\S+)', page, re.MULTILINE)
        assert float(seconds) > 0
    assert "memproxy_requests_total{" in page  # from a filter
    assert "memproxy_queue_turns{" in page  # from a worker
    assert "memproxy_embed_seconds_count{" in page  # from a filter
    assert "envoy_http_ext_proc_inject_streams_started{" in page  # from Envoy
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_a_taken_port_or_one_for_two_things_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("--data-dir", str(tmp_path / "data"), *FREE_PORTS[1:], f"--port={port}")
    assert f"port: cannot bind 127.0.0.1:{port}" in said
    twice = (f"--port={port}", f"--api-port={port}", *FREE_PORTS[2:])
    assert "already that of port" in refused("--data-dir", str(tmp_path / "data"), *twice)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--host=0.0.0.0",), "development"),
        (("--upstream=ftp://models",), "upstream"),
        (("--ports-file=/nowhere/ports.json",), "ports_file"),
    ],
)
def test_a_bad_setting_stops_the_start_and_is_named(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refused("--data-dir", str(tmp_path / "data"), *FREE_PORTS, *arguments)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    """Beside the interpreter there is none in a virtual environment that holds nothing but a link to our own code."""
    script = (
        "import sys; sys.executable = sys.argv.pop(1); sys.argv[0] = 'memproxy';from extproc.cli import main; main()"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "python"), "up", "--data-dir", str(tmp_path / "d")]
    ended = subprocess.run([*words, *FREE_PORTS], capture_output=True, text=True, timeout=60, env={"PATH": "/nowhere"})
    assert ended.returncode == 2
    assert "`envoy` is neither beside" in ended.stderr


@pytest.mark.full("parts are started until one of them ends")
def test_a_part_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    """A turn log that is a folder: the parts that open it end at once, and what they said is shown."""
    (tmp_path / "data" / "turns.sqlite").mkdir(parents=True)
    said = refused("--data-dir", str(tmp_path / "data"), "--upstream=http://127.0.0.1:9", *FREE_PORTS)
    assert "Its last lines:" in said
    assert "turns.sqlite" in said


@pytest.mark.full("parts are started until one of them ends")
def test_a_database_url_of_a_database_that_is_not_there_ends_the_start_with_what_to_write(tmp_path: Path) -> None:
    url = postgres_server().url.replace("/postgres", "/nowhere")
    words = ("--data-dir", str(tmp_path / "data"), "--upstream=http://127.0.0.1:9", "--database-url", url)
    said = refused(*words, *FREE_PORTS)
    assert 'database_url: database "nowhere" does not exist' in said.splitlines()[-1]


def test_the_ports_file_of_the_last_run_is_gone_once_all_is_claimed_and_not_before(tmp_path: Path) -> None:
    ports_file = tmp_path / "ports.json"
    ports_file.write_text(json.dumps({"proxy": 1}))
    settings = Settings(data_dir=str(tmp_path / "data"), ports_file=str(ports_file), port=0, api_port=0)
    settings = msgspec.structs.replace(settings, envoy_admin_port=0, metrics_port=0)
    with claimed(settings):
        assert not ports_file.exists()
        ports_file.write_text(json.dumps({"proxy": 2}))
        with pytest.raises(CannotStart, match="in use"), claimed(settings):
            pass
        assert json.loads(ports_file.read_text()) == {"proxy": 2}, "a refused second start left it alone"
