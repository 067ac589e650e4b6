"""Where an erased user is looked for depends on whose store it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.row_scan import FILES_OF_LITE
from memory.adapters.milvus.store import MilvusStore
from memory.model import VectorOrigin
from memory.processes.erasure_parts import row_scan
from memory.runtime.metrics import Metrics
from memory.settings import Settings

METRICS = Metrics(CollectorRegistry())
USER = "user-who-leaves-3c1d"


@pytest.mark.parametrize("written", ["", "http://127.0.0.1:9", "its own"])
async def test_files_of_earlier_runs_are_not_taken_for_those_of_another_milvus_lite(
    tmp_path: Path, milvus_lite: MilvusLiteServer, collection: str, written: str
) -> None:
    """`written`: the address that the last `up` on the data directory left, of its own Milvus Lite."""
    settings = Settings(data_dir=str(tmp_path), milvus_uri=milvus_lite.uri)
    settings.milvus_dir.mkdir()  # by an earlier run
    if written:
        settings.milvus_uri_file.write_text(milvus_lite.uri if written == "its own" else written)
    address = milvus_lite.address(collection, DIMENSION, VectorOrigin("a model", DIMENSION))
    async with (
        MilvusStore(address, metrics=METRICS, timeouts=PATIENT) as store,
        row_scan(settings, address, METRICS) as scan,
    ):
        await put(await prepared(store), memory("m-1", user_id=USER))
        found = await scan.scan([USER])
        await store.delete(USER, ["m-1"])
    if written == "its own":
        assert found is None, "its files are read"
    else:
        assert found is not None
        assert found.found_in == (f"rows of {collection}",)
        assert FILES_OF_LITE in found.not_searched
