"""The whole product as a user starts it: `memproxy up` in its own process, free ports, its own data directory."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx
from api_shapes import ASKED_COMPLETIONS, AskedShape

LISTEN = "0A"  # a socket's state in /proc/net/tcp
READY_SECONDS_MAX = 180.0  # loading the models on two cores that others keep busy is the longest part
# Tests show that a memory is found. How fast it is found, benches show on a quiet machine, with the defaults.
UNHURRIED = {
    "MEMPROXY_MEMORY_DEADLINE_MS": "400",
    "MEMPROXY_MEMORY_EMBEDDING_TIMEOUT_MS": "350",
    "MEMPROXY_MEMORY_WORKING_SET_PATIENCE_MS": "300",
}
PATIENCE_SECONDS = 180.0  # for what happens behind an answer: only stops what never happens
OFF_ROUTE = "guests.example.com"  # where the shared product has no memory
TRUSTED_PAGE = "https://app.example"  # an origin that the shared product trusts
LATE_TIMES_MAX = 20  # in a row: a machine that others keep busy may be late for seconds


class Product:
    """One `memproxy up`. `ports` is what it wrote into its ports file. `is_timed`: with the default time limits.
    `tree`: the folder of another version, whose code runs with this environment's packages.
    """

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        upstream: str = "",
        config: Path | None = None,
        is_timed: bool = False,
        tree: Path | None = None,
    ) -> None:
        self.data_dir = data_dir
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        self.log_file = data_dir.parent / f"{data_dir.name}.log"
        self.ports_file = data_dir.parent / f"{data_dir.name}.ports.json"
        self._arguments = [
            *("--data-dir", str(data_dir), "--ports-file", str(self.ports_file)),
            *("--port", "0", "--api-port", "0", "--metrics-port", "0"),
            *(("--upstream", upstream) if upstream else ()),
            *(("--config", str(config)) if config else ()),
            *arguments,
        ]
        inherited = os.environ  # noqa: TID251 - what a shell would pass on
        self._environment = {**inherited, **({} if is_timed else UNHURRIED)}
        self._environment |= {"PYTHONPATH": str(tree)} if tree else {}
        self.process: subprocess.Popen[str] | None = None
        self.ports: dict[str, int] = {}
        self.stdout: list[str] = []
        self.run_folder = Path()  # with the sockets of its parts

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['proxy']}"

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.ports['api']}"

    def start(self) -> None:
        """Start and wait for the line `ready …`. Raises with the log's end when it does not come."""
        self.ports_file.unlink(missing_ok=True)
        command = [str(Path(sys.executable).parent / "memproxy"), "up", *self._arguments]
        with self.log_file.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            line = self.process.stdout.readline()
            if line:
                self.stdout.append(line)
                assert line.startswith("ready http://"), line
                self.ports = json.loads(self.ports_file.read_text())
                words = command_line(self.children("memproxy worker")[0]).split()
                self.run_folder = Path(words[words.index("--config") + 1]).parent
                return
            time.sleep(0.05)
        raise AssertionError(f"not ready; exit code {self.process.poll()}; log:\n{self.log()[-4000:]}")

    def log(self) -> str:
        return self.log_file.read_text()

    def children(self, contains: str = "") -> list[int]:
        """Process ids of all descendants whose command line contains these words."""
        assert self.process is not None
        return [pid for pid in descendants(self.process.pid) if contains in command_line(pid)]

    def stop(self) -> int:
        """SIGTERM and wait; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        finally:
            self._close()

    def kill_everything(self) -> None:
        """kill -9 of the supervisor and all it started, at once."""
        assert self.process is not None
        for pid in [self.process.pid, *self.children()]:
            with_pid(pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        self._close()

    def _close(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def store_uri(self) -> str:
        """Of its own Milvus Lite."""
        return (self.data_dir / "milvus.uri").read_text(encoding="ascii").strip()

    def admin(self) -> httpx.Client:
        """Of Envoy's admin page."""
        transport = httpx.HTTPTransport(uds=str(self.run_folder / "envoy-admin.sock"))
        return httpx.Client(transport=transport, base_url="http://envoy", timeout=30)

    def chat(
        self,
        text: str,
        user_id: str = "",
        *,
        shape: AskedShape = ASKED_COMPLETIONS,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        """A chat of one user message. `session_id` goes into the context, the rest into the body."""
        context = {"user_id": user_id, **{k: more.pop(k) for k in ("session_id", "project_id") if k in more}}
        body = shape.body([{"role": "user", "content": text}], **more)
        if user_id:
            body["memory_context"] = context
        return httpx.post(f"{self.url}{shape.shape.path}", json=body, headers=headers, timeout=30)

    def ask(self, text: str, user_id: str, **more: Any) -> httpx.Response:
        """A chat that memory had time for: sent again only while memory itself reports that it was too late.

        Whatever memory answers in time is returned as it is, be it `empty` or a note without the fact.
        """
        return in_time(lambda: self.chat(text, user_id, **more))

    def flush(self, user_id: str) -> dict[str, int]:
        answer = httpx.post(f"{self.api}/v1/memory/flush", params={"user_id": user_id}, json={}, timeout=130)
        answer.raise_for_status()
        return answer.json()

    def receipt(self, answer: httpx.Response, user_id: str) -> Any:
        """Of a chat. It is written behind the request, so it may come a moment after the reply."""
        url = f"{self.api}/v1/memory/receipts/{answer.headers['x-memory-receipt']}"

        def got() -> Any:
            found = httpx.get(url, params={"user_id": user_id}, timeout=30)
            return found.json() if found.status_code == 200 else None

        return eventually(got)

    def memories(self, user_id: str) -> list[str]:
        """The contents of all active memories, through REST."""
        contents: list[str] = []
        cursor = ""
        while True:
            params = {"user_id": user_id, "limit": "100", **({"cursor": cursor} if cursor else {})}
            answer = httpx.get(f"{self.api}/v1/memory", params=params, timeout=30)
            answer.raise_for_status()
            page = answer.json()
            contents += [m["content"] for m in page["memories"]]
            cursor = page.get("next_cursor") or ""
            if not cursor:
                return contents


class Headed(Protocol):
    @property
    def headers(self) -> httpx.Headers: ...


Answered = TypeVar("Answered", bound=Headed)


def in_time(send: Callable[[], Answered]) -> Answered:
    """The first answer that memory had time for; the last one if none of `LATE_TIMES_MAX` was in time.

    Without a status Envoy went on alone, since the filter took longer than Envoy's timeout.
    """
    answer = send()
    for _ in range(LATE_TIMES_MAX - 1):
        if answer.headers.get("x-memory-status", "unavailable") != "unavailable":
            return answer
        answer = send()
    return answer


def eventually(check: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS, every: float = 0.1) -> Any:
    """What `check` returns as soon as it is true; fails after that many seconds with what it returned last."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(every)


def descendants(pid: int) -> list[int]:
    """All living descendants of a process, from /proc."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, queue = [], [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def listening(pids: Iterable[int]) -> list[tuple[IPv4Address | IPv6Address, int]]:
    """Host and port of every TCP socket on which one of these processes listens, from /proc."""
    sockets = {name for pid in pids for name in _open_files(pid) if name.startswith("socket:")}
    found = []
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == LISTEN and f"socket:[{fields[9]}]" in sockets:
                host, _, port = fields[1].partition(":")
                found.append((_address(bytes.fromhex(host)), int(port, 16)))
    return found


def _open_files(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile
            yield str(link.readlink())


def _address(shown: bytes) -> IPv4Address | IPv6Address:
    """From words of four bytes, each in the order of this machine. IPv4 within IPv6 is the IPv4 that it stands for."""
    size = struct.calcsize("I")
    words = struct.unpack(f"={len(shown) // size}I", shown)
    address = ip_address(struct.pack(f"!{len(words)}I", *words))
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def with_pid(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


@contextmanager
def running_product(
    data_dir: Path,
    *arguments: str,
    upstream: str = "",
    config: Path | None = None,
    is_timed: bool = False,
    tree: Path | None = None,
) -> Iterator[Product]:
    product = Product(data_dir, *arguments, upstream=upstream, config=config, is_timed=is_timed, tree=tree)
    try:
        product.start()
        yield product
    finally:
        if product.process is not None and product.process.poll() is None:
            product.stop()


def sentences(texts: Sequence[str]) -> set[str]:
    """Texts as comparable statements: case and a final stop do not count."""
    return {text.strip().rstrip(".").casefold() for text in texts}
