"""A part as a child process, with real processes: it comes back, it stops, and it never outlives its supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from product import command_line, eventually

from extproc.supervisor import processes
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.processes import ChildProcess, ProcessCommand

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"


class Stage:
    """A log that can be read back, and a list of deaths."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "stderr"
        self._descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT)
        self.log = LogLines(self._descriptor, as_json=False)
        self.deaths: list[tuple[str, int]] = []

    def part(self, code: str, **more: object) -> ChildProcess:
        command = ProcessCommand(name="thing", argv=(sys.executable, "-c", code), environment={}, **more)  # type: ignore[arg-type]
        return ChildProcess(
            command,
            log=self.log,
            logger=supervisor_logger(self.log, as_json=False),
            on_death=lambda part, pid: self.deaths.append((part.name, pid)),
        )

    def said(self) -> str:
        self.log.close()
        return self.file.read_text()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.log.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*parts: ChildProcess) -> AsyncIterator[None]:
    """They are stopped at the end."""
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part.keep_running())
        yield
        for part in parts:
            await part.stop()


@pytest.mark.parametrize(("steady_seconds", "pauses"), [(600.0, [0.02, 0.04, 0.05, 0.05]), (0.0, [0.02] * 4)])
async def test_a_part_that_dies_is_started_again_after_a_pause_that_grows_to_its_bound_unless_it_lived_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, steady_seconds: float, pauses: list[float]
) -> None:
    monkeypatch.setattr(processes, "BACKOFF_FIRST_SECONDS", 0.02)
    monkeypatch.setattr(processes, "BACKOFF_MAX_SECONDS", 0.05)
    monkeypatch.setattr(processes, "STEADY_SECONDS", steady_seconds)
    part = stage.part("raise SystemExit(7)")
    async with running(part):
        await until(lambda: part.deaths >= 4)
    assert part.exit_code == 7
    said = stage.said()
    paused = [float(word.partition("=")[2]) for word in said.split() if word.startswith("restart_in_seconds=")]
    assert paused[:4] == pauses
    assert "code 7" in said


async def test_a_part_killed_from_outside_comes_back_under_a_new_pid(stage: Stage) -> None:
    part = stage.part(SLEEPER)
    async with running(part):
        await until(lambda: part.tail)
        first = part.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: part.pid not in (None, first))
    assert stage.deaths == [("thing", first)]
    assert "signal SIGKILL" in stage.said()


async def test_a_part_that_is_restarted_comes_back_at_once_and_has_not_died(stage: Stage) -> None:
    part = stage.part(SLEEPER)
    assert await part.restart() == 0, "it does not run"
    async with running(part):
        await until(lambda: part.tail)
        first = part.pid
        assert await part.restart() == first
        await until(lambda: part.pid not in (None, first))
    assert (part.deaths, stage.deaths) == (0, [])


async def test_a_program_that_is_gone_is_tried_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BACKOFF_FIRST_SECONDS", 0.02)
    part = stage.part(SLEEPER)
    part.command = ProcessCommand(name="thing", argv=("/nowhere/at/all",), environment={})
    async with running(part):
        await until(lambda: part.deaths >= 2)
    assert "/nowhere/at/all" in stage.said() or "No such file" in stage.said()


async def test_a_part_that_does_not_stop_is_killed_after_its_grace(stage: Stage) -> None:
    part = stage.part(STUBBORN, stop_seconds=0.2)
    async with running(part):
        await until(lambda: part.tail)
        pid = part.pid
    assert pid is not None
    assert not command_line(pid)
    assert "killed" in stage.said()
    assert stage.deaths == []


async def test_a_stop_while_the_part_is_being_started_leaves_nothing_behind(stage: Stage) -> None:
    part = stage.part(SLEEPER)
    async with asyncio.timeout(60), running(part):
        await asyncio.sleep(0)  # it is on its way, and has no process to show yet
    assert not part.is_running


async def test_every_line_goes_to_the_log_under_its_part(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.stdout.write('no line end')"
    part = stage.part(code)
    async with running(part):
        await until(lambda: part.deaths)
    said = stage.said()
    for line in ("to stdout", "to stderr", "no line end"):
        assert f"thing     | {line}\n" in said
    assert capfd.readouterr().out == ""


async def test_a_reader_who_does_not_read_stops_nobody(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    log = LogLines(writing, as_json=False)
    for number in range(50_000):
        log.write("thing", f"line {number}")
    log.close()
    os.close(reading)
    os.close(writing)


SUPERVISOR = """
import asyncio, os, sys
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.processes import ChildProcess, ProcessCommand

log = LogLines(2, as_json=False)
code = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)"
parts = [
    ChildProcess(
        ProcessCommand(name=f"thing-{n}", argv=(sys.executable, "-c", code), environment=dict(os.environ)),
        log=log, logger=supervisor_logger(log, as_json=False), on_death=lambda part, pid: None,
    )
    for n in range(3)
]

async def main():
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part.keep_running())

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_part_outlives_a_supervisor_that_was_killed(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", SUPERVISOR], stderr=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stderr is not None
        pids = [int(supervisor.stderr.readline().rpartition(" ")[2]) for _ in range(3)]
        assert all(command_line(pid) for pid in pids)
        supervisor.send_signal(number)
        supervisor.wait(60)
    eventually(lambda: not [pid for pid in pids if command_line(pid)])


async def test_a_part_hears_no_ctrl_c_of_the_terminal_and_may_step_back(stage: Stage) -> None:
    """Also where the kernel compares sessions; where it groups none, the niceness of the process is all that counts."""
    groups = Path("/proc/self/autogroup").exists()
    nice = "pathlib.Path('/proc/self/autogroup').read_text().split()[-1]" if groups else "os.nice(0)"
    show = f"import os, pathlib, time; print(os.getsid(0) == os.getpid(), os.nice(0), {nice}, flush=True)"
    parts = [stage.part(f"{show}; time.sleep(600)", niceness=7) for _ in range(3)]  # one after the other, at once
    async with running(*parts):
        await until(lambda: all(part.tail for part in parts))
    session = 7 if groups else os.nice(0) + 7
    assert [part.tail[0] for part in parts] == [f"True {os.nice(0) + 7} {session}"] * 3


# The embedded store as a process: what its signal does, and what its files and its socket are to others


TOLD_WHILE_IT_STARTS = """
import os, signal, sys
from pathlib import Path
from extproc.supervisor import milvus_lite

start = milvus_lite.start_server_in_thread

def started(*words, **named):
    os.kill(os.getpid(), signal.SIGINT)
    running = start(*words, **named)
    print(oct(Path(sys.argv[2]).stat().st_mode & 0o077))
    return running

milvus_lite.start_server_in_thread = started
milvus_lite.serve(Path(sys.argv[1]), f"unix:{sys.argv[2]}")
"""


def test_a_store_told_to_stop_while_it_starts_closes_its_files_and_is_never_open_to_others(tmp_path: Path) -> None:
    data, path = tmp_path / "milvus", tmp_path / "milvus.sock"
    words = [sys.executable, "-c", TOLD_WHILE_IT_STARTS, str(data), str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, "0o0\n"), ended.stderr
    made = [*data.rglob("*")]
    assert made
    assert not [one for one in made if stat.S_IMODE(one.stat().st_mode) & 0o077]


def test_a_store_that_cannot_listen_says_so(tmp_path: Path) -> None:
    memproxy = str(Path(sys.executable).with_name("memproxy"))
    words = [memproxy, "milvus-lite", "server", "--data-dir", str(tmp_path / "m"), "--address", f"unix:{tmp_path}/a/b"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert "cannot listen on" in ended.stderr
    assert "Traceback" not in ended.stderr
