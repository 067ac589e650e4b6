"""A test that leaves a port, a file or a process behind fails, or ends the run, with its name. A pytest plugin.

Ports that this process listens on and files in its folder for temporary ones are looked at after each test; what a
fixture of a wider scope than a test makes belongs to that fixture. Processes are looked for when all tests have ended:
each carries the name of the test that started it in its environment, also when its parent is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from product import listening, with_pid

RUN = "TEST_RUN"  # names this process in the environment of all that it starts
PATIENCE_SECONDS = 20.0  # for what is ending as its test ends
BY_TEST = "PYTEST_CURRENT_TEST"
# Of PostgreSQL servers that live as long as this process (postgres_server.py), and what libraries make once.
FILES_OF_THE_PROCESS = ("memproxy-postgres-", ".ses", "torchinductor_")
PROCESSES_OF_PYTHON = "multiprocessing.resource_tracker"


PROCESSES = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[PROCESSES] = []
    is_spreading = bool(config.getoption("tx", default=None))  # over processes of xdist, which run the tests
    if not config.option.collectonly and not is_spreading:
        config.pluginmanager.register(LeftBehind(config), "left_behind_of_tests")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[PROCESSES].extend(getattr(node, "workeroutput", {}).get("left_processes", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for named in terminalreporter.config.stash[PROCESSES]:
        terminalreporter.write_line(f"FAILED {named}", red=True, bold=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash[PROCESSES]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_processes"] = session.config.stash[PROCESSES]


class LeftBehind:
    """Watches one process that runs tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._expected: set[str] = set()
        self._folder = Path()
        self._run = f"{os.getpid()}-{time.time_ns()}"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # beside our folder, not in it
        self._folder = Path(tempfile.mkdtemp(prefix="t"))  # short: paths of sockets have 107 bytes at most
        self._folder.chmod(0o711)  # tests give up their rights and look into what they made here
        os.environ[RUN], os.environ["TMPDIR"] = self._run, str(self._folder)  # noqa: TID251 - for all that tests start
        tempfile.tempdir = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        before = self._found() if fixturedef.scope != "function" else set()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._expected |= self._found() - before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        result = yield
        deadline = time.monotonic() + PATIENCE_SECONDS
        while left := self._found() - self._expected:
            if time.monotonic() > deadline:
                self._expected |= left
                pytest.fail(f"left behind: {', '.join(sorted(left))}", pytrace=False)
            time.sleep(0.05)
        return result

    def _found(self) -> set[str]:
        ports = {f"the port {host}:{port}" for host, port in listening([os.getpid()])}
        files = (path for path in self._folder.iterdir() if not path.name.startswith(FILES_OF_THE_PROCESS))
        return ports | {f"the file {path}" for path in files}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (left := started_by(self._run)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            with_pid(pid, signal.SIGKILL)
        self._config.stash[PROCESSES] += [f"{test} left a process behind: {command}" for command, test in left.values()]
        shutil.rmtree(self._folder, ignore_errors=True)


def started_by(run: str) -> dict[int, tuple[str, str]]:
    """Living processes with this name in their environment: what they execute, and which test started them."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = dict(pair.split("=", 1) for pair in (folder / "environ").read_text().split("\0") if "=" in pair)
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, UnicodeDecodeError):
            continue
        is_ours = variables.get(RUN) == run and int(folder.name) != os.getpid()
        if is_ours and PROCESSES_OF_PYTHON not in command:
            found[int(folder.name)] = (command, variables.get(BY_TEST, "a fixture"))
    return found
