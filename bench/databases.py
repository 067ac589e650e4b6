"""The database under a bench: a file of SQLite, as by default, or with `--postgres` a real PostgreSQL server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from rig import Rig, running_rig

from postgres_server import PostgresServer, own_postgres_server  # isort: skip - on the path since `rig`


def add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--postgres", action="store_true", help="state on a PostgreSQL server instead of in SQLite")


@contextmanager
def own_database(*, is_postgres: bool) -> Iterator[PostgresServer | None]:
    """A server of its own; None: each product has its file."""
    with own_postgres_server() if is_postgres else nullcontext() as server:
        yield server


@contextmanager
def running_rig_on(postgres: PostgresServer | None, *arguments: str, config: Path | None = None) -> Iterator[Rig]:
    """As `running_rig`, with its state there; what the server spends counts as the part "postgres"."""
    words = ("--database-url", postgres.url) if postgres else ()
    with running_rig(*arguments, *words, config=config) as rig:
        yield replace(rig, database_pid=postgres.pid) if postgres else rig


@contextmanager
def rig_with_database(*arguments: str, is_postgres: bool) -> Iterator[Rig]:
    """A product with a database of its own."""
    with own_database(is_postgres=is_postgres) as postgres, running_rig_on(postgres, *arguments) as rig:
        yield rig
