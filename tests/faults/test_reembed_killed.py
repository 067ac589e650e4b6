"""`memproxy reembed` killed with -9 in the middle, more than once, on real parts: nothing is lost, and it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
from foreign_embeddings import ForeignEmbeddings, running_foreign_embeddings, vector_of
from reembed_command import OLD, Place, stored

from memory.model import VectorOrigin

DIMENSION = 24
NEW = VectorOrigin("the new one", DIMENSION)
COUNT = 1_200  # more than a page


async def killed_after(place: Place, server: ForeignEmbeddings, texts: int) -> None:
    """Run it until so many texts were embedded in this run, then kill -9."""
    server.texts.clear()
    process = await place.start()
    async with asyncio.timeout(60):
        while len(server.texts) < texts:
            assert process.returncode is None, (await process.communicate())[1].decode()
            await asyncio.sleep(0.005)
    process.kill()
    await process.communicate()


async def test_killed_in_the_middle_it_loses_no_memory_and_goes_on_where_it_was(tmp_path: Path) -> None:
    place, before = Place(tmp_path), [*stored(COUNT), *stored(50, user_id="bob")]
    await place.fill(*before)
    async with running_foreign_embeddings(dimension=DIMENSION) as server:
        place.configure(server.url, DIMENSION)
        await killed_after(place, server, 350)
        old = await place.records(OLD, "ann", "bob")
        assert {one.id: one for one in before} == {i: record.memory for i, record in old.items()}
        await killed_after(place, server, 350)
        server.texts.clear()
        shown = (await place.run("--json")).shown
        assert shown["embedded"] == len(server.texts)
        assert shown["embedded"] <= len(before) - 400  # of two runs, all but the batch that each was in
        assert shown["embedded_before"] + shown["embedded"] == len(before)
        new = await place.records(NEW, "ann", "bob")
        assert {one.id: one for one in before} == {i: record.memory for i, record in new.items()}
        for record in new.values():
            vector = vector_of(record.memory.content, DIMENSION)
            np.testing.assert_allclose(record.vector, vector / np.linalg.norm(vector), atol=1e-6)
        again = (await place.run("--json")).shown
        assert (again["is_needed"], again["memories"]) == (False, len(before))
