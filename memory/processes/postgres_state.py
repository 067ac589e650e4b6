"""What is kept on PostgreSQL. Imported only where `database_url` is set: the library costs memory and start-up time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from memory.adapters.sql.beating_owners import living_owners
from memory.adapters.sql.postgres_database import PostgresDatabase, prepare_tables, version_of_tables
from memory.adapters.sql.postgres_files import PostgresRewriting, rewrite_tables, table_sizes, tables_scanned
from memory.adapters.sql.postgres_pool import PostgresAddress, PostgresPool
from memory.adapters.sql.sqlite_compacting import FileSizes
from memory.adapters.whole_ids import WholeId
from memory.model.erasures import PlaceReport
from memory.processes.kept_state import introduction
from memory.settings import Settings


def postgres_database(settings: Settings, part: str = "") -> PostgresDatabase:
    """Not open. `part`: the process that opens it; empty for a tool."""
    return PostgresDatabase(_address(settings), introduction=introduction(part))


def postgres_rewriting(settings: Settings) -> PostgresRewriting:
    return PostgresRewriting(_address(settings))


def sizes_of_tables(settings: Settings) -> FileSizes:
    """Raises `Unavailable`."""
    size = sum(one for _, one in table_sizes(_address(settings)))
    return FileSizes(size, size)


def compact_tables(settings: Settings, advance: Callable[[int, int], None]) -> FileSizes:
    """While nothing else runs, as `rewrite_tables` says."""
    return rewrite_tables(_address(settings), advance=advance)


def postgres_scan(settings: Settings, wanted: WholeId) -> PlaceReport:
    return tables_scanned(_address(settings), wanted)


async def processes_on_postgres(settings: Settings) -> int:
    return await asyncio.to_thread(living_owners, PostgresPool(_address(settings)))


def migrate_tables(settings: Settings, *, is_dry: bool) -> int:
    """Bring the tables of an older version to this one, while nothing else runs. Returns the version that they had, 0
    without tables. Raises `BadSetting`, `Unavailable`.
    """
    address = _address(settings)
    return version_of_tables(address) if is_dry else prepare_tables(address, migrates=True)


def _address(settings: Settings) -> PostgresAddress:
    database = settings.memory.database
    return PostgresAddress(settings.database_url, database.username, database.password, database.certificate_authority)
