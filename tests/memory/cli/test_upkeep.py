"""`memproxy upkeep` against a real Milvus Lite and a real turn log: all users or one, dry or not, as table or JSON."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_worlds import run
from hashing_embedder import HashingEmbedder
from milvus_lite_server import MilvusLiteServer
from own_embedder import embedding_model
from prometheus_client import CollectorRegistry
from typer.testing import Result

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import BadSetting
from memory.model import Change, ChangeKind, Evidence, Memory
from memory.ports import MemoryFilter
from memory.processes.from_settings import vector_origin
from memory.runtime.metrics import Metrics
from memory.settings.loader import from_process

NOW = 1_700_000_000.0
STORED = {
    "ann": {"a1": "I like tea", "a2": "I like tea!", "a3": "[bold]I[/bold] like \x1b[31mcoffee"},
    "bob": {"b1": "I like tea", "b2": "I like tea"},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A data directory, the configuration that names it, and the server that holds its memories."""

    data: Path
    config: Path
    uri: str
    collection: str

    def upkeep(self, *words: str) -> Result:
        return run("upkeep", *words, "--config", self.config)

    def changes(self, *words: str) -> list[tuple[str, str]]:
        shown = json.loads(self.upkeep(*words, "--json", "--milvus-uri", self.uri).stdout)
        return sorted((row["user_id"], row["why"]) for row in shown["changes"])

    def statuses(self) -> dict[str, str]:
        return asyncio.run(self._statuses())

    async def _statuses(self) -> dict[str, str]:
        async with self.store() as store:
            pages = [await store.page(MemoryFilter(user, status=None), limit=50, cursor="") for user in STORED]
        return {one.id: one.status.value for page in pages for one in page.items}

    def store(self) -> MilvusStore:
        address = MilvusAddress(
            self.uri, self.collection, 384, origin=vector_origin(from_process(None, {}), embedding_model().card)
        )
        return MilvusStore(address, metrics=Metrics(CollectorRegistry()))

    async def fill(self) -> None:
        async with SqliteDatabase(self.data / "turns.sqlite") as database, self.store() as store:
            ledger = SqlUserLedger(database, clock=lambda: NOW)
            for user, memories in STORED.items():
                vectors = await HashingEmbedder(dimension=384).embed(list(memories.values()), is_urgent=False)
                rows = [
                    Memory(i, user, content, NOW, NOW, NOW, evidence=(Evidence(content, f"turn-{i}"),))
                    for i, content in memories.items()
                ]
                async with ledger.write(user) as held:
                    held.touch(list(memories))
                    await store.apply(user, [Change(ChangeKind.CREATE, row) for row in rows], vectors)


@pytest.fixture
def place(tmp_path: Path, milvus_lite: MilvusLiteServer, collection: str) -> Place:
    (tmp_path / "data").mkdir()
    config = tmp_path / "memproxy.yaml"
    settings = {"data_dir": str(tmp_path / "data"), "run_dir": str(tmp_path)}
    config.write_text(json.dumps({**settings, "memory": {"milvus": {"collection": collection}}}))
    filled = Place(tmp_path / "data", config, milvus_lite.uri, collection)
    asyncio.run(filled.fill())
    return filled


def test_a_dry_run_tells_what_and_how_many_and_changes_nothing_then_the_run_does_it(place: Place) -> None:
    before = place.statuses()
    expected = [("ann", "duplicate"), ("ann", "united"), ("bob", "duplicate"), ("bob", "united")]
    assert place.changes("all", "--dry-run") == expected
    place.data.joinpath("milvus.uri").write_text(place.uri)  # as a running `up` leaves it
    shown = place.upkeep("consolidate", "--dry-run").stdout
    assert shown.splitlines()[0].split() == ["user", "why", "id", "content"]
    assert shown.splitlines()[-1].startswith("would change: 4, ")
    assert "\x1b" not in shown
    assert place.statuses() == before
    assert place.changes("all") == expected
    assert sorted(i for i, status in place.statuses().items() if status == "archived") in (["a1", "b1"], ["a2", "b2"])
    assert place.changes("all") == []


def test_one_user_and_one_task_leave_the_rest_alone_and_what_is_missing_is_told(place: Place) -> None:
    assert place.changes("prune") == []
    assert place.changes("consolidate", "--user", "bob") == [("bob", "duplicate"), ("bob", "united")]
    assert {i for i, status in place.statuses().items() if status == "archived"} <= {"b1", "b2"}
    with pytest.raises(BadSetting, match="--milvus-uri"):
        place.upkeep("all")
    with pytest.raises(BadSetting, match=r"memory\.life\.reflect_from"):
        place.upkeep("reflect", "--milvus-uri", place.uri)
