"""A collection that an earlier release made on a Milvus server: refused by parts, then copied by `memproxy migrate`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from memory_rows import DIMENSION, direction, memory
from milvus_kinds import prepared
from milvus_standalone import TOKEN, MilvusServer
from older_collections import older_collection
from prometheus_client import CollectorRegistry

from memory.adapters import row_codec
from memory.adapters.milvus import schema
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.errors import BadSetting, Unavailable
from memory.model import Memory, Record, VectorOrigin
from memory.ports import MemoryFilter, Outdated
from memory.runtime.metrics import Metrics
from memory.service.migration import Migrate

ORIGIN = VectorOrigin("the same", DIMENSION)
COUNT = 250  # more than one batch
COMMAND_SECONDS_MAX = 120.0


def stored() -> list[Memory]:
    return [memory(f"m{number}", user_id=f"user-{number % 7}") for number in range(COUNT)]


@pytest.fixture
def older(milvus_server: MilvusServer, collection: str) -> str:
    rows = [row_codec.row_of(Record(one, direction(1.0, float(number)))) for number, one in enumerate(stored())]
    older_collection(milvus_server, collection, ORIGIN, rows)
    return collection


def migration(server: MilvusServer, collection: str) -> MilvusReembedding:
    address = server.address(collection, DIMENSION, ORIGIN)
    return MilvusReembedding(address, wanted=ORIGIN, metrics=Metrics(CollectorRegistry()))


def opened(server: MilvusServer, collection: str) -> MilvusStore:
    return MilvusStore(server.address(collection, DIMENSION, ORIGIN), metrics=Metrics(CollectorRegistry()))


async def nobody_else() -> None:
    return


async def test_parts_refuse_it_and_a_run_that_was_cut_off_is_continued(milvus_server: MilvusServer, older: str) -> None:
    async with opened(milvus_server, older) as store:
        with pytest.raises(BadSetting, match=r"schema version 1.*memproxy migrate"):
            await store.prepare()

    def cut(done: int, total: int) -> None:
        assert total == COUNT
        if done >= COUNT // 2:
            raise Unavailable("milvus", "cut off by the test")

    async with migration(milvus_server, older) as first:
        with pytest.raises(Unavailable, match="cut off"):
            await Migrate(first, wanted=ORIGIN).run(advance=cut, check_alone=nobody_else)
        assert (await first.status()).outdated is Outdated.SCHEMA
    seen: list[tuple[int, int]] = []
    async with migration(milvus_server, older) as second:
        done = await Migrate(second, wanted=ORIGIN).run(
            advance=lambda *progress: seen.append(progress), check_alone=nobody_else
        )
        assert 0 < done.copied < COUNT
        assert done.status.embedded + done.copied == COUNT
        assert seen[-1] == (COUNT, COUNT)
        assert (await second.status()).outdated is None
    async with opened(milvus_server, older) as store:
        await prepared(store)
        records = [
            record for number in range(7) for record in await store.load(MemoryFilter(f"user-{number}"), limit=COUNT)
        ]
        assert {one.memory.id: one.memory for one in records} == {one.id: one for one in stored()}
        for one in records:
            assert one.vector.tolist() == pytest.approx(direction(1.0, float(one.memory.id[1:])).tolist())


async def test_another_model_is_sent_to_reembed(milvus_server: MilvusServer, older: str) -> None:
    other = VectorOrigin("another", DIMENSION)
    address = milvus_server.address(older, DIMENSION, other)
    async with MilvusReembedding(address, wanted=other, metrics=Metrics(CollectorRegistry())) as store:
        with pytest.raises(BadSetting, match="memproxy reembed"):
            await Migrate(store, wanted=other).run(advance=lambda *_: None, check_alone=nobody_else)


async def test_the_command_says_what_it_would_do_and_what_it_did(
    milvus_server: MilvusServer, older: str, tmp_path: Path
) -> None:
    config = tmp_path / "memproxy.yaml"
    embedding = {"endpoint": "http://127.0.0.1:1", "model": ORIGIN.model, "dimension": DIMENSION}
    memory_settings = {"milvus": {"collection": older, "dimension": DIMENSION}, "embedding": embedding}
    settings = {"data_dir": str(tmp_path / "data"), "milvus_uri": milvus_server.uri, "memory": memory_settings}
    config.write_text(json.dumps(settings))

    async def migrate(*words: str) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "extproc", "migrate", "--config", str(config), *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200", "MEMPROXY_MEMORY_MILVUS_TOKEN": TOKEN},  # noqa: TID251 - the command's
        )
        async with asyncio.timeout(COMMAND_SECONDS_MAX):
            stdout, stderr = await process.communicate()
        assert process.returncode == 0, stderr.decode()
        return stdout.decode(), stderr.decode()

    dry, _ = await migrate("--dry-run", "--json")
    needed = {"is_dry_run": True, "is_needed": True, "reason": "schema"}
    assert json.loads(dry) == {**needed, "memories": COUNT, "copied_before": 0}
    assert "a schema of an earlier release" in (await migrate("--dry-run"))[0]
    done, progress = await migrate("--json")
    shown = json.loads(done)
    assert (shown["is_needed"], shown["copied"]) == (True, COUNT)
    assert f"{COUNT}/{COUNT}" in progress  # the bar
    assert (await migrate())[0].startswith("nothing to do")


async def test_a_collection_of_a_later_release_is_named(
    milvus_server: MilvusServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
        async with opened(milvus_server, collection) as store:
            await prepared(store)
    async with opened(milvus_server, collection) as store:
        with pytest.raises(BadSetting, match="later release"):
            await store.prepare()
