"""The contract of `memproxy up`, with all real parts: one line when ready, nothing left behind, whatever ends it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from ipaddress import ip_address
from pathlib import Path

import httpx
import msgspec
import pytest
from product import READY_SECONDS_MAX, Product, command_line, eventually, listening, running_product
from redis_server import redis_server
from upstream import RecordingUpstream

from extproc.supervisor.locks_and_ports import CannotStart
from extproc.supervisor.supervisor import claimed
from memory.settings import Settings

MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
FREE_PORTS = ("--port=0", "--api-port=0", "--envoy-admin-port=0", "--metrics-port=0")
PARTS = ("envoy", "milvus-lite server", "memproxy filter", "memproxy worker", "memproxy api")


@pytest.fixture
def product(shared_product: Product) -> Product:
    return shared_product


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a start says that must not succeed."""
    ended = subprocess.run(
        [MEMPROXY, "up", *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    return ended.stderr


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_folder(product: Product) -> Path:
    [pid] = product.children("memproxy worker")
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return Path(words[words.index("--config") + 1]).parent


def test_the_first_chat_is_recalled_and_learnt_a_stream_is_finished_at_the_end_and_after_a_restart_all_is_found(
    upstream: RecordingUpstream, tmp_path: Path
) -> None:
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        answer = product.chat("I play the cello on Thursdays.", "cellist")
        assert answer.headers["x-memory-status"] in ("empty", "used")
        assert product.flush("cellist")["pending"] == 0
        question = "When do I play the cello?"
        assert product.ask(question, "cellist").headers["x-memory-status"] == "used"
        ends_in_mid_stream(product, upstream)
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        assert product.ask("Which instrument do I play?", "cellist").headers["x-memory-status"] == "used"
        assert not api_holds_a_model(product), "it is there for searches of the API, of which there was none"
        asked = httpx.post(
            f"{product.api}/v1/memory/search",
            params={"user_id": "cellist"},
            json={"query": "Which instrument do I play?"},
            timeout=30,
        )
        assert "cello" in asked.raise_for_status().json()["memories"][0]["content"]
        assert api_holds_a_model(product)


def api_holds_a_model(product: Product) -> bool:
    [pid] = product.children("memproxy api")
    return "onnxruntime" in Path(f"/proc/{pid}/maps").read_text()


def ends_in_mid_stream(product: Product, upstream: RecordingUpstream) -> None:
    """A stream under way is finished before the end."""
    upstream.chunk_seconds, upstream.chunk_count = 0.1, 30
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Tell me a long story."}]}
    with httpx.stream("POST", f"{product.url}/v1/chat/completions", json=body, timeout=30) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert product.process is not None
        product.process.send_signal(signal.SIGTERM)
        rest = list(lines)
    assert "data: [DONE]" in rest
    assert product.process.wait(timeout=30) == 0
    product.stop()
    upstream.behave()


def test_after_everything_was_killed_the_first_question_of_who_never_chatted_finds_a_memory(
    upstream: RecordingUpstream, tmp_path: Path
) -> None:
    """Written through REST alone, a little of it right before the kill: the snapshot lacks that, and it is found."""
    snapshots = tmp_path / "data" / "snapshots"
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        boats = [f"My boat number {number} lies in harbour {number % 7}." for number in range(150)]
        remember(product, "sailor", *boats)
        eventually(lambda: snapshots.is_dir() and [one for one in snapshots.iterdir() if not one.suffix])
        remember(product, "sailor", "My parrot is called Flint.")
        product.kill_everything()
        product.start()
        answer = product.ask("What is my parrot called?", "sailor")
        assert answer.headers["x-memory-status"] == "used"
        assert "Flint" in upstream.last_chat().body.decode()
        page = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=10).text
        assert 'memproxy_snapshots_total{outcome="read"}' in page
        httpx.delete(f"{product.api}/v1/memory", params={"user_id": "sailor"}, timeout=30).raise_for_status()
        assert not list(snapshots.iterdir())


def remember(product: Product, user_id: str, *contents: str) -> None:
    memories = [{"content": content} for content in contents]
    url, params = f"{product.api}/v1/memory", {"user_id": user_id}
    httpx.post(url, params=params, json={"memories": memories}, timeout=30).raise_for_status()


def test_what_the_operator_does_not_want_stored_is_not(upstream: RecordingUpstream, tmp_path: Path) -> None:
    config = tmp_path / "memproxy.yaml"
    config.write_text("memory: {auto_store: false}\n")
    with running_product(tmp_path / "data", upstream=upstream.url, config=config) as product:
        wanted = {"memory_config": {"auto_store": True}}
        assert product.chat("My banjo is green.", "banjoist", **wanted).status_code == 200
        assert product.flush("banjoist") == {"pending": 0, "failed": 0}
        assert product.memories("banjoist") == []


def test_every_part_is_recognised_by_its_command_line_and_none_shows_a_secret(product: Product) -> None:
    for part in PARTS:
        assert product.children(part), part
    environment = Path(f"/proc/{product.children('memproxy api')[0]}/environ").read_bytes().decode().split("\0")
    [secret] = [word.partition("=")[2] for word in environment if word.startswith("MEMPROXY_EDGE_SECRET=")]
    assert len(secret) >= 32
    assert not [pid for pid in product.children() if secret in command_line(pid)]
    files = [path for path in run_folder(product).iterdir() if path.is_file()]
    assert not [path.name for path in files if secret in path.read_text(errors="replace")]


def test_the_ports_file_names_ports_that_answer(product: Product) -> None:
    assert set(product.ports) == {"proxy", "api", "envoy_admin", "metrics", "milvus"}
    for name, port in product.ports.items():
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            assert port > 0, name


def test_nothing_of_ours_listens_beyond_loopback(product: Product) -> None:
    assert product.process is not None
    addresses = listening([product.process.pid, *product.children()])
    assert {port for _, port in addresses} >= set(product.ports.values())
    assert [(str(host), port) for host, port in addresses if not host.is_loopback] == []


def test_a_listener_is_seen_with_its_address() -> None:
    """What the rule above rests on."""
    with socket.create_server(("127.0.0.2", 0)) as server:
        assert listening([os.getpid()]).count((ip_address("127.0.0.2"), server.getsockname()[1])) == 1


def test_the_worker_steps_back_behind_the_request_path(product: Product) -> None:
    def niceness(part: str) -> int:
        return os.getpriority(os.PRIO_PROCESS, product.children(part)[0])

    assert niceness("memproxy filter") < niceness("memproxy worker")


def test_one_page_holds_the_metrics_of_all_parts(product: Product) -> None:
    product.chat("Which colour has my shed?", "early bird")
    page = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=10).text
    for part in ("envoy", "filter-0", "worker-0", "api", "milvus"):
        assert f'memproxy_part_up{{part="{part}"}} 1.0' in page
        [seconds] = re.findall(rf'^memproxy_part_start_seconds{{part="{part}"}} (\S+)', page, re.MULTILINE)
        assert 0.0 < float(seconds) < READY_SECONDS_MAX
    assert "memproxy_requests_total{" in page  # from a filter
    assert "memproxy_queue_turns{" in page  # from a worker
    assert "memproxy_embed_seconds_count{" in page  # from a filter
    assert "envoy_http_ext_proc_inject_streams_started{" in page  # from Envoy
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_a_second_up_on_the_same_data_directory_is_refused_by_name(product: Product) -> None:
    assert product.process is not None
    said = refused("--data-dir", str(product.data_dir), *FREE_PORTS)
    assert f"pid {product.process.pid}" in said
    assert "--data-dir" in said


@pytest.mark.parametrize("part", ["memproxy api", "envoy"])
def test_a_part_that_was_killed_comes_back_and_is_counted(product: Product, part: str) -> None:
    [before] = product.children(part)
    name = part.rpartition(" ")[2]
    counted = f'memproxy_part_restarts_total{{part="{name}"}}'
    os.kill(before, signal.SIGKILL)
    eventually(lambda: [pid for pid in product.children(part) if pid != before])

    def page() -> str:
        return httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=10).text

    eventually(lambda: f'memproxy_part_up{{part="{name}"}} 1.0' in page(), seconds=60, every=0.5)
    assert counted in page()
    assert product.stdout == [product.stdout[0]]


def test_nothing_outlives_a_killed_supervisor_and_the_next_up_starts_at_once(
    upstream: RecordingUpstream, tmp_path: Path
) -> None:
    first = Product(tmp_path / "data", upstream=upstream.url)
    first.start()
    assert first.process is not None
    first.chat("My canoe is called Otter.", "paddler")
    assert first.flush("paddler")["pending"] == 0
    pids, folder = first.children(), run_folder(first)
    assert len(pids) >= len(PARTS)
    first.process.kill()
    assert first.stop() == -signal.SIGKILL
    eventually(lambda: not [pid for pid in pids if is_alive(pid)])

    with running_product(tmp_path / "data", upstream="http://127.0.0.1:9") as second:  # unreachable: only a warning
        assert not folder.exists()
        assert second.memories("paddler") == ["My canoe is called Otter."]
        assert "upstream is not reachable" in second.log()
        pids, folder = second.children(), run_folder(second)
        assert second.process is not None
        assert second.process.stdout is not None
        started = time.monotonic()
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(timeout=30) == 0
        assert time.monotonic() - started < 15
        assert second.process.stdout.read() == ""  # after the one line, nothing
        second.stop()
        assert not [pid for pid in pids if is_alive(pid)]
        assert not folder.exists()
    assert second.stdout == [f"ready {second.url}\n"]


def test_a_taken_port_stops_the_start_and_names_the_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("--data-dir", str(tmp_path / "data"), *FREE_PORTS[1:], f"--port={port}")
    assert f"port: cannot bind 127.0.0.1:{port}" in said


def test_one_port_for_two_things_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    arguments = (f"--port={port}", f"--api-port={port}", *FREE_PORTS[2:])
    assert "already that of port" in refused("--data-dir", str(tmp_path / "data"), *arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--filters=none",), "filters"),
        (("--host=0.0.0.0",), "development"),
        (("--upstream=ftp://models",), "upstream"),
        (("--config=/nowhere.yaml",), "/nowhere.yaml"),
    ],
)
def test_a_bad_setting_stops_the_start_and_is_named(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    (tmp_path / "file").write_text("")  # whatever else is wrong, this start ends here
    assert expected in refused("--data-dir", str(tmp_path / "file"), *FREE_PORTS, *arguments)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    """Beside the interpreter there is none in a virtual environment that holds nothing but a link to our own code."""
    script = (
        "import sys; sys.executable = sys.argv.pop(1); sys.argv[0] = 'memproxy';from extproc.cli import main; main()"
    )
    words = [
        sys.executable,
        "-c",
        script,
        str(tmp_path / "python"),
        "up",
        "--data-dir",
        str(tmp_path / "d"),
        *FREE_PORTS,
    ]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env={"PATH": "/nowhere"})
    assert ended.returncode == 2
    assert "`envoy` is neither beside" in ended.stderr


def test_a_part_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    """A turn log that is a folder: the parts that open it end at once, and what they said is shown."""
    (tmp_path / "data" / "turns.sqlite").mkdir(parents=True)
    said = refused("--data-dir", str(tmp_path / "data"), "--upstream=http://127.0.0.1:9", *FREE_PORTS)
    assert "Its last lines:" in said
    assert "turns.sqlite" in said


def test_a_redis_url_that_takes_a_single_server_for_a_cluster_ends_the_start_with_what_to_write(tmp_path: Path) -> None:
    url = redis_server().url.replace("://", "+cluster://", 1)
    said = refused(
        "--data-dir", str(tmp_path / "data"), "--upstream=http://127.0.0.1:9", "--redis-url", url, *FREE_PORTS
    )
    assert "redis_url: this is a single server, no cluster: leave out +cluster" in said.splitlines()[-1]


def test_a_ports_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    arguments = ("--data-dir", str(tmp_path / "data"), "--ports-file", str(tmp_path / "none" / "ports.json"))
    assert "ports_file" in refused(*arguments, *FREE_PORTS)


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
