"""What the Milvus at hand can do and needs, decided once from the version that it reports.

The rest of the adapter asks for a capability and never for a version. A cluster is like a standalone server.
"""

from __future__ import annotations

from dataclasses import dataclass

LITE_NAME = "milvus_lite"  # a server that was installed from PyPI calls itself `v2.3.5-lite`, and is none
FIRST_WITH_WORDS = (2, 4)  # with inverted indexes on text, and patterns that match within it


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`partitions_users`: a search then reads one partition only; on Milvus Lite it would become slower.

    `text_index`: kind of a scalar index on text; "" if none is to be made: on Milvus Lite it loses hits.
    `finds_words`: `like` finds text anywhere in a field; before 2.4 only where a field begins with it.
    `flushes_after_writes`: unflushed rows make searches slow. A server flushes by itself, and a flush of ours for each
    write would leave many small segments; there, a writer waits until its rows are visible instead.
    `sweeps_by_search`: a search without a limit returns all rows, in a third of a query's time.
    `rebuilds_index`: an index file may be incomplete after a kill, and is to be made again.
    `keeps_deleted_bytes`: its files hold deleted rows as long as their collection exists; a server compacts by itself.
    `oldest_schema`: version of the oldest collection that can be used as it is.
    """

    partitions_users: bool
    text_index: str
    finds_words: bool
    flushes_after_writes: bool
    sweeps_by_search: bool
    rebuilds_index: bool
    keeps_deleted_bytes: bool
    oldest_schema: int


LITE = Capabilities(
    partitions_users=False,
    text_index="",
    finds_words=True,
    flushes_after_writes=True,
    sweeps_by_search=True,
    rebuilds_index=True,
    keeps_deleted_bytes=True,
    oldest_schema=1,  # version 2 changed nothing there
)


def capabilities_of(version: str) -> Capabilities:
    """`version`: as reported, for example `milvus_lite-3.2.2`, `v2.3.5-lite`, `v2.5.4`, `2.6.0-rc1`."""
    if version.lower().startswith(LITE_NAME):
        return LITE
    major, minor = [*(int(part) for part in version.lstrip("vV").split(".")[:2] if part.isdigit()), 0, 0][:2]
    is_recent = (major, minor) >= FIRST_WITH_WORDS
    return Capabilities(
        partitions_users=True,
        text_index="INVERTED" if is_recent else "Trie",
        finds_words=is_recent,
        flushes_after_writes=False,
        sweeps_by_search=False,
        rebuilds_index=False,
        keeps_deleted_bytes=False,
        oldest_schema=2,
    )
