"""Creates, selects and replaces the collection that holds the memories.

The collection named in the settings is the first generation. Reembedded memories are in a later generation of that name
(`NAME__2`, `NAME__3`, …), since Milvus cannot change the length of vectors. The alias `NAME__live`, which Milvus sets
atomically, names the generation in use; without it, the first one is used. Calls go to the collection itself and never
through the alias, since a process has to notice a replacement.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from memory.adapters import row_codec
from memory.adapters.milvus import schema as milvus_schema
from memory.adapters.milvus.schema import Capabilities, Library
from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.ports import Outdated

LIBRARY_SECONDS = 60.0  # our own limit is always shorter; without one the library would retry 75 times
CODES_NO_ALIAS = (100, 1600)  # how Milvus Lite reports a missing alias
LIVE = "__live"
FRESH_NAMES_MAX = 5  # names tried: one is unusable if Milvus Lite was killed while creating or dropping it
LOOK_PAUSE_SECONDS = 0.05
LOOKS_MAX = 5  # checks which collection is in use, while others may be replacing an empty one

Client: TypeAlias = Any
"""A `pymilvus.AsyncMilvusClient`, which is untyped."""


class Collections:
    """The generations of one name, on one server, through one connected client. Raises the library's errors."""

    def __init__(self, client: Client, library: Library, *, name: str, can: Capabilities) -> None:
        self._client = client
        self._library = library
        self._name = name
        self._can = can

    async def opened(self, *, dimension: int, origin: VectorOrigin | None) -> str:
        """The one in use, loaded; created if missing. After an interruption the next attempt continues.

        Raises `BadSetting` if it holds vectors of another origin, or is not ours. An empty one is replaced.
        """
        failure: Exception | None = None
        is_replacing = False
        for _ in range(LOOKS_MAX):
            live = await self.live()
            try:
                await self.ensure(live, dimension=dimension, origin=origin)
                description = await self.described(live)
                milvus_schema.check_fields(description, collection=self._name)
                milvus_schema.check_version(description, collection=self._name, can=self._can)
                if milvus_schema.holds_vectors_of(description, dimension=dimension, origin=origin):
                    await self.load(live)
                    if await self.live() == live:
                        return live
                    continue  # it was replaced meanwhile, and perhaps created again by us
                failure = milvus_schema.refusal(description, collection=self._name, dimension=dimension, origin=origin)
                if origin is None or not await self._is_empty(live):
                    raise failure
                is_replacing = True
                await self._start_anew(live, origin)
            except self._library.MilvusException as error:
                if not is_replacing and await self.live() == live:
                    raise
                failure = error  # another process is doing the same
                await asyncio.sleep(LOOK_PAUSE_SECONDS)
        assert failure is not None
        raise failure

    async def live(self) -> str:
        """The name of the one in use, whether or not it exists."""
        try:
            found = await self._client.describe_alias(self._name + LIVE, timeout=LIBRARY_SECONDS)
        except self._library.MilvusException as error:
            if error.code not in CODES_NO_ALIAS:
                raise
            return self._name
        return str(found["collection_name"])

    async def make_live(self, collection: str) -> None:
        """Atomically."""
        if await self.live() == collection:
            return
        try:
            await self._name_by(self._name + LIVE, collection)
        except self._library.MilvusException:
            if await self.live() != collection:  # otherwise another process was faster
                raise

    async def answer_by_name(self, collection: str) -> None:
        """Let others who ask for the collection of the settings find this generation, once that collection is gone."""
        if self._name not in await self._client.list_collections(timeout=LIBRARY_SECONDS):
            await self._name_by(self._name, collection)

    async def _name_by(self, alias: str, collection: str) -> None:
        try:
            await self._client.alter_alias(collection, alias, timeout=LIBRARY_SECONDS)
        except self._library.MilvusException as error:
            if error.code not in CODES_NO_ALIAS:
                raise
            await self._client.create_alias(collection, alias, timeout=LIBRARY_SECONDS)

    async def others(self) -> list[str]:
        """The generations that are not in use: unfinished, or replaced."""
        live = await self.live()
        found = await self._client.list_collections(timeout=LIBRARY_SECONDS)
        return sorted((one for one in map(str, found) if self._number(one) and one != live), key=self._number)

    async def exists(self, collection: str) -> bool:
        return bool(await self._client.has_collection(collection, timeout=LIBRARY_SECONDS))

    async def described(self, collection: str) -> dict[str, Any]:
        description: dict[str, Any] = await self._client.describe_collection(collection, timeout=LIBRARY_SECONDS)
        return description

    async def count(self, collection: str) -> int:
        """Of all rows. After this, pages have all that was written before: in the order of keys a server does not
        wait.
        """
        [row] = await self._client.query(
            collection, filter="", output_fields=["count(*)"], consistency_level="Strong", timeout=LIBRARY_SECONDS
        )
        return int(row["count(*)"])

    async def load(self, collection: str) -> None:
        """Creates a new index if the existing one is unreadable: Milvus Lite, killed while writing one, leaves a
        partial file on which it fails permanently. Indexes hold no data of their own.
        """
        try:
            await self._client.load_collection(collection, timeout=LIBRARY_SECONDS)
        except self._library.MilvusException:
            if not self._can.is_lite or not await self.exists(collection):
                raise
            await self._client.drop_index(collection, row_codec.VECTOR_FIELD, timeout=LIBRARY_SECONDS)
            await self._ensure_index(collection)
            await self._client.load_collection(collection, timeout=LIBRARY_SECONDS)

    async def is_loaded(self, collection: str) -> bool:
        state = await self._client.get_load_state(collection, timeout=LIBRARY_SECONDS)
        return str(state.get("state")) == "Loaded"

    async def drop(self, collection: str) -> None:
        await self._client.drop_collection(collection, timeout=LIBRARY_SECONDS)

    async def outdated(self, collection: str, *, rows: int) -> Outdated | None:
        """Whether it has an older schema than can be used, or an index that serves fewer than these rows."""
        if not await self._has_usable_schema(collection):
            return Outdated.SCHEMA
        if self._can.is_lite:
            return None
        found = await self._client.describe_index(collection, row_codec.VECTOR_FIELD, timeout=LIBRARY_SECONDS)
        kind = str((found or {}).get("index_type", ""))
        return None if milvus_schema.index_fits(kind, can=self._can, rows=rows) else Outdated.INDEX

    async def is_successor(self, collection: str, origin: VectorOrigin) -> bool:
        """Whether it may follow as it is: vectors of this origin, in the present schema."""
        return await self.has_vectors_of(collection, origin) and await self._has_usable_schema(collection)

    async def has_vectors_of(self, collection: str, origin: VectorOrigin) -> bool:
        """Also if both state no model: one that states none agrees with nothing."""
        found = milvus_schema.origin_of(await self.described(collection))
        return found == origin or found.agrees_with(origin)

    async def _has_usable_schema(self, collection: str) -> bool:
        return milvus_schema.version_of(await self.described(collection)) >= milvus_schema.oldest_version(self._can)

    async def successor(
        self, live: str, origin: VectorOrigin, *, names_max: int = FRESH_NAMES_MAX, rows: int = 0
    ) -> str:
        """The next generation for so many rows with vectors of this origin: an unfinished one, or a new one.

        One for another origin is left alone if `names_max` allows another name.
        """
        failure: Exception | None = None
        for number in range(self._number(live) + 1, self._number(live) + 1 + names_max):
            name = f"{self._name}__{number}"
            try:
                await self.ensure(name, dimension=origin.dimension, origin=origin, rows=rows)
            except self._library.MilvusException as error:
                if await self.exists(name):
                    raise
                failure = error  # possibly blocked by the remains of one after Milvus Lite was killed
                continue
            if await self.is_successor(name, origin):
                await self.load(name)
                return name
        raise failure or BadSetting(
            f"collection {self._name!r}: the next name for new vectors ({self._name}__N) is taken: stop memproxy and "
            "run `memproxy reembed`, or drop what does not belong there"
        )

    async def ensure(self, collection: str, *, dimension: int, origin: VectorOrigin | None, rows: int = 0) -> None:
        """Create it unless it exists, with its index for so many rows."""
        if not await self.exists(collection):
            schema = milvus_schema.fields(self._library, dimension=dimension, origin=origin)
            try:
                await self._client.create_collection(
                    collection, schema=schema, properties=milvus_schema.record_of(origin), timeout=LIBRARY_SECONDS
                )
            except self._library.MilvusException:
                if not await self.exists(collection):  # otherwise another process was faster
                    raise
        if not await self._has_usable_schema(collection):
            return  # it is only read, by `memproxy migrate`
        if not self._can.is_lite:
            known = set(await self._client.list_partitions(collection, timeout=LIBRARY_SECONDS))
            for name in milvus_schema.ALL_PARTITIONS:  # a process that was killed may have made some
                if name not in known:
                    await self._client.create_partition(collection, name, timeout=LIBRARY_SECONDS)
        await self._ensure_index(collection, rows=rows)

    async def _ensure_index(self, collection: str, *, rows: int = 0) -> None:
        if row_codec.VECTOR_FIELD in await self._client.list_indexes(collection):
            return  # made last, since a server takes no more indexes once the collection is loaded
        params = milvus_schema.index(self._library, can=self._can, rows=rows)
        try:
            await self._client.create_index(collection, params, timeout=LIBRARY_SECONDS)
        except (self._library.MilvusException, self._library.decorators.grpc.RpcError):
            # Milvus Lite creates the index, then fails to report the time that the client asks for; or another process
            # did.
            if row_codec.VECTOR_FIELD not in await self._client.list_indexes(collection):
                raise

    async def _is_empty(self, collection: str) -> bool:
        await self.load(collection)
        return await self.count(collection) == 0

    async def _start_anew(self, live: str, origin: VectorOrigin) -> None:
        """Replace this empty collection by another empty one: the same one, whichever process is first.

        If that one is not empty, the next check shows why: it is in use by now, or `reembed` has to be run.
        """
        successor = await self.successor(live, origin, names_max=1)
        if await self._is_empty(successor):
            await self.make_live(successor)
            await self.drop(live)

    def _number(self, collection: str) -> int:
        """The number of its generation, from 1; 0 for a collection of another name."""
        if collection == self._name:
            return 1
        number = collection.removeprefix(f"{self._name}__")
        return int(number) if number != collection and number.isascii() and number.isdigit() else 0
