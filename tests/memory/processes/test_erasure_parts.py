"""Where an erased user is looked for depends on what the settings name."""

from __future__ import annotations

from pathlib import Path

from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.deleted_rows import FILES_OF_A_SERVER
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.erasures import SqlErasures
from memory.model import VectorOrigin
from memory.model.erasures import ErasureRequest
from memory.processes.erasure_parts import Verification, verified
from memory.processes.state_parts import sqlite_database
from memory.runtime.metrics import Metrics
from memory.settings import Settings

USER = "user-who-leaves-3c1d"


def found_in(found: Verification) -> dict[str, tuple[str, ...]]:
    return {one.place: one.found_in for one in found.places}


async def test_rows_of_a_store_elsewhere_and_files_of_earlier_runs_are_looked_through(
    tmp_path: Path, milvus_lite: MilvusLiteServer, collection: str
) -> None:
    settings = Settings(data_dir=str(tmp_path), milvus_uri=milvus_lite.uri)
    settings.milvus_dir.mkdir()
    (settings.milvus_dir / "manifest.json").write_text(f'{{"of": "{USER}"}}')
    address = milvus_lite.address(collection, DIMENSION, VectorOrigin("a model", DIMENSION))
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        await put(await prepared(store), memory("m-1", user_id=USER))
        found = await verified(settings, USER)
        assert found_in(found) == {"files": ("milvus/manifest.json",), "milvus": (f"rows of {collection}",)}
        assert not found.is_clean
        (settings.milvus_dir / "manifest.json").unlink()
        await store.delete(USER, ["m-1"])
        found = await verified(settings, USER)
    assert (found_in(found), found.is_clean) == ({"files": (), "milvus": ()}, True)
    assert FILES_OF_A_SERVER in found.places[1].not_searched


async def test_nothing_is_verified_while_an_erasure_waits_for_its_files(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path))
    request = ErasureRequest("e1", 1.0, 1.0, {"memories": 1})
    async with sqlite_database(settings) as database:
        await SqlErasures(database).begun(USER, request)
    found = await verified(settings, USER)
    assert (found_in(found), found.waiting, found.is_clean) == ({"files": ()}, 1, False)
    async with sqlite_database(settings) as database:
        await SqlErasures(database).rewritten([request], at=2.0)
    assert (await verified(settings, USER)).is_clean
