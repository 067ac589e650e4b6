"""Whoever exports a user and imports them into an empty system finds the same there, ranked the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.model import Scope
from memory.processes import composition
from memory.service.library import Library
from memory.service.requests import NewMemory
from memory.settings import loader

SAID = (
    "I live in a small flat in Ghent",
    "My sister Ines lives in Porto and works as a nurse",
    "I am allergic to walnuts",
    "My cat is called Biscuit and is four years old",
    "I work for a company that builds wind turbines",
    "I moved from Antwerp to Ghent three years ago",
    "My bicycle was stolen in March, and I bought a green one",
    "I play the cello in an orchestra of amateurs",
    "On Thursdays I learn Portuguese at an evening school",
    "I do not drink coffee after noon",
    "My father turns seventy in October",
    "I have run two half marathons",
    "I prefer trains to planes, even to Porto",
    "My landlord is Mr. Claes, who lives downstairs",
    "I keep bees on the roof with a neighbour",
    "My laptop runs Debian",
)
ASKED = (
    "Where do I live now?",
    "What should I not put into a cake for me?",
    "How could I travel to my sister?",
    "Which instrument do I play?",
    "What did I say about my pets and other animals?",
    "When is my father's birthday?",
)


@asynccontextmanager
async def system(
    folder: Path, milvus: MilvusLiteServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Library]:
    """An empty one, with the product's own parts."""
    folder.mkdir()
    config = folder / "memproxy.yaml"
    config.write_text(json.dumps({"memory": {"milvus": {"collection": collection}}}), encoding="utf-8")
    places = {"data_dir": str(folder), "run_dir": str(folder), "milvus_uri": milvus.uri}
    models = str(loader.from_process(None, {}).models_path)
    monkeypatch.setattr(composition, "REGISTRY", CollectorRegistry())  # the process's own takes one set of metrics
    async with composition.open_parts(loader.load(config, places | {"models_dir": models}, {})) as parts:
        await parts.store.prepare()
        yield parts.library()


async def ranked(library: Library) -> list[list[tuple[str, float]]]:
    answers = [await library.search(Scope("ann"), query=question) for question in ASKED]
    return [[(one.memory.content, round(one.score, 3)) for one in found[:5]] for found in answers]


async def test_an_imported_user_is_found_and_ranked_as_before(
    tmp_path: Path, milvus_lite: MilvusLiteServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with system(tmp_path / "here", milvus_lite, f"{collection}_here", monkeypatch) as here:
        for number, said in enumerate(SAID):
            await here.add(Scope("ann"), [NewMemory(said, created_at=1_000_000.0 + number * 86_400)])
        before = await ranked(here)
        lines = [line async for line in here.transfers.export("ann")]

    async def sent() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    async with system(tmp_path / "there", milvus_lite, f"{collection}_there", monkeypatch) as there:
        assert await ranked(there) == [[] for _ in ASKED]
        assert (await there.transfers.load("ann", sent())).stored == len(SAID)
        assert await ranked(there) == before
    assert all(before)
    assert max(len(found) for found in before) > 1, "an order of one says nothing"
