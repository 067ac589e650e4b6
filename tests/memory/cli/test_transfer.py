"""`memproxy export` and `import`: files of exports, and the stores of other systems, through the real REST API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from api_parts import ANN
from command_worlds import NOBODY, memories_of, run, told
from library_parts import Parts
from milvus_kinds import RealMilvus
from pymilvus import DataType, MilvusClient
from served_app import served
from served_library import served_library
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from typer.testing import CliRunner

from extproc.cli import memproxy
from memory.cli.transfer import line_batches
from memory.errors import BadInput, MemproxyError, Unavailable
from memory.processes.composition import SYSTEM_CLOCK

HEADER = b'{"kind":"memproxy-export","user_id":"ann","version":1}\n'
NOTHING_ELSE: dict[str, Any] = {"profiles": 0, "turns": 0, "messages": 0, "raw_words": 0, "unread": {}}
ROUTER_DIMENSION = 8
FROM_ROUTER = ("import", "--from", "semantic-router", "--milvus-uri")
MEM0_FOLDER = Path(__file__).parents[2] / "data" / "mem0"


def line(number: int, content: str = "tea") -> bytes:
    return msgspec.json.encode({"kind": "memory", "memory": {"id": f"m{number}", "content": content}}) + b"\n"


def imported(stored: int, *, present: int = 0, profiles: int = 0) -> dict[str, Any]:
    return {"stored": stored, "present": present, "forgotten": 0} | NOTHING_ELSE | {"profiles": profiles}


def test_a_file_is_replaced_only_by_a_complete_one(tmp_path: Path) -> None:
    async def broken_off(_: Request) -> StreamingResponse:
        async def lines() -> AsyncIterator[bytes]:
            yield HEADER
            raise ConnectionError

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    file = tmp_path / "ann.jsonl"
    file.write_bytes(b"the last export")
    with served(Starlette(routes=[Route("/v1/memory/export", broken_off)])) as port:
        words = ("export", "--user", "ann", "--api", f"http://127.0.0.1:{port}", "--output")
        with pytest.raises(Unavailable, match="broke off after"):
            run(*words, file)
        with pytest.raises(BadInput, match="cannot write"):
            run(*words, tmp_path / "none" / "ann.jsonl")
    assert [one.name for one in tmp_path.iterdir()] == ["ann.jsonl"]
    assert file.read_bytes() == b"the last export"


def test_no_call_is_larger_than_the_api_takes(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    lines = [line(number) for number in range(450)]
    file.write_bytes(HEADER + b"".join(lines))
    batches = list(line_batches(file))
    assert [(len(batch.lines), batch.first_line) for batch in batches] == [(200, 2), (200, 202), (50, 402)]
    assert [one for batch in batches for one in batch.lines] == lines
    file.write_bytes(HEADER + b"".join(line(number, "x" * 400_000) for number in range(5)))
    assert [len(batch.lines) for batch in line_batches(file)] == [2, 2, 1]


def test_what_is_no_export_is_refused_with_its_line_before_anything_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    words = ("import", file, "--user", "bob", "--api", NOBODY)
    for content, said in (
        (HEADER + b"".join(map(line, range(250))) + b"[1]\n", r"line 252 of odd\.jsonl is not a JSON object"),
        (HEADER + line(1) + line(2, "x" * (16 << 20)), r"line 3 of odd\.jsonl has more than"),
        (line(1), r"line 1 of odd\.jsonl is not the line that an export begins with"),
    ):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=said):
            run(*words)
    run("import", file, "--api", NOBODY, code=2)  # whose?
    run("import", "--user", "bob", "--api", NOBODY, code=2)  # what?
    run("import", file, "--from", "semantic-router", "--milvus-uri", "http://x", code=2)


# Through the real REST API


def test_what_is_exported_is_what_the_api_gives_byte_for_byte(rest: str, tmp_path: Path) -> None:
    run("import", MEM0_FOLDER / "ann.json", "--from", "mem0", "--api", rest)
    file, words = tmp_path / "ann.jsonl", ("export", "--user", "ann", "--api", rest)
    given = httpx.get(f"{rest}/v1/memory/export", headers=ANN).content
    assert told(*words, "--output", file) == {"output": str(file), "memories": 3, "bytes": len(given)}
    assert file.read_bytes() == given == run(*words).stdout_bytes


def test_an_export_of_several_calls_is_imported_elsewhere_and_a_refused_line_named(rest: str, tmp_path: Path) -> None:
    rows, file = tmp_path / "rows.jsonl", tmp_path / "ann.jsonl"
    rows.write_text("".join(json.dumps({"user": "ann", "text": f"Likes tea number {n}"}) + "\n" for n in range(230)))
    run("bootstrap", rows, "--user-column", "user", "--content-template", "{text}", "--api", rest)
    run("export", "--user", "ann", "--api", rest, "--output", file)
    lines = file.read_bytes().splitlines()
    with library_in(tmp_path / "elsewhere") as other:
        own = ("import", file, "--user", "ann", "--api", other)
        assert told(*own, "--dry-run") == {"is_dry_run": True, "valid": 230}
        assert told(*own) == imported(230)
        assert told(*own) == imported(0, present=230)
        words = ("import", file, "--user", "bob", "--api", other)
        lines[220] = json.dumps({"kind": "memory", "memory": {"id": "x"}}).encode()
        file.write_bytes(b"\n".join([*lines[:100], b"", *lines[100:], b'{"kind":"drawing"}']))
        with pytest.raises(MemproxyError, match=r"after 199 memories: line 222 is not one of an export"):
            run(*words)
        profile = b'{"kind":"profile","pinned":["Be brief"]}'
        file.write_bytes(b"\n".join([*lines[:220], *lines[221:], b'{"kind":"drawing"}', profile]))
        counts = imported(30, present=199, profiles=1) | {"unread": {"drawing": 1}}
        assert told(*words) == counts
        assert "not read: 1 of 'drawing'" in run(*words).stdout


# The stores of other systems


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[str]:
    with library_in(tmp_path / "library") as address:
        yield address


@contextmanager
def library_in(folder: Path) -> Iterator[str]:
    async def set_clock(parts: Parts) -> None:
        parts.now = SYSTEM_CLOCK()

    folder.mkdir()
    with served_library(folder, set_clock) as address:
        yield address


def test_a_store_that_mem0_wrote_becomes_memories(rest: str, tmp_path: Path) -> None:
    for user, count in (("ann", 3), ("bob", 1), ("clara", 4), ("dirk", 26)):
        file = MEM0_FOLDER / f"{user}.json"
        assert told("import", file, "--from", "mem0", "--user", "nobody", "--dry-run")["valid"] == 0
        counts = {"imported": count, "skipped": 0, "opted_out": 0, "incomplete": 0, "users": 1}
        assert told("import", file, "--from", "mem0", "--api", rest) == counts
        stored, alone = json.loads(file.read_text())["results"], tmp_path / file.name
        alone.write_text(json.dumps(stored))  # the list alone, as older releases gave it
        assert told("import", alone, "--from", "mem0", "--api", rest)["imported"] == 0
        found = {one["content"]: one for one in memories_of(rest, user)}
        assert sorted(found) == sorted(one["memory"] for one in stored)
    york = found_of(rest, "ann", "My name is Ann and I live in York")
    assert (york["session_id"], york["agent_id"], york["metadata"]["role"]) == ("trip", "planner", "user")
    assert found_of(rest, "ann", "I like to play cricket on weekends")["metadata"]["category"] == "hobbies"
    bees = found_of(rest, "clara", "I keep bees behind the greenhouse")["metadata"]
    assert (bees["tags"], bees["verified"]) == (["bees", 3], True)
    diet = found_of(rest, "dirk", "I only eat vegan food\nand no peanuts")
    assert (diet["session_id"], diet["metadata"]["source"]) == ("diet", {"kind": "form", "page": 2})


def test_a_memory_of_an_agent_that_mem0_wrote_gets_the_user_who_is_named(rest: str) -> None:
    words = ("import", MEM0_FOLDER / "ops.json", "--from", "mem0", "--api", rest)
    with pytest.raises(BadInput, match="entry 1: it names no user: give --user"):
        run(*words)
    run(*words, "--user", "team")
    (deploys,) = memories_of(rest, "team")
    assert (deploys["content"], deploys["agent_id"]) == ("The team deploys on Tuesdays", "ops")


def test_nothing_is_imported_for_a_user_who_has_opted_out(rest: str, tmp_path: Path) -> None:
    file, own = tmp_path / "mem0.json", tmp_path / "bob.jsonl"
    file.write_text(json.dumps([{"id": user, "memory": "Has two cats", "user_id": user} for user in ("ann", "bob")]))
    own.write_bytes(HEADER + b'{"kind":"profile","pinned":["Be brief"]}\n')
    assert told("opt-out", "--user", "bob", "--api", rest)["opted_out"]
    counts = {"imported": 1, "skipped": 0, "opted_out": 1, "incomplete": 0, "users": 2}
    assert told("import", file, "--from", "mem0", "--api", rest) == counts
    assert (len(memories_of(rest, "ann")), memories_of(rest, "bob")) == (1, [])
    with pytest.raises(BadInput, match="opted out"):
        run("import", own, "--user", "bob", "--api", rest)
    assert run("opt-in", "--user", "bob", "--api", rest).stdout == "memory is on\n"
    assert told("import", own, "--user", "bob", "--api", rest)["profiles"] == 1


def test_mem0s_own_limit_is_pointed_out_and_what_it_never_wrote_refused(tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    words = ("import", file, "--from", "mem0", "--user", "ann", "--dry-run")
    for count in (20, 1):
        file.write_text(json.dumps([{"id": str(number), "memory": f"fact {number}"} for number in range(count)]))
        assert ("top_k" in run(*words).stderr) == (count == 20)
    for content in ("no JSON", '{"memories": []}', '"results"'):
        file.write_text(content)
        with pytest.raises(BadInput, match="JSON"):
            run(*words)


def found_of(rest: str, user: str, content: str) -> dict[str, Any]:
    (one,) = [memory for memory in memories_of(rest, user) if memory["content"] == content]
    return one


# vLLM Semantic Router


def create_collection(client: MilvusClient, collection: str) -> None:
    """With the router's schema and index: milvus_store_schema.go and milvus_store_collection.go in pkg/memory."""
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for name, length in (("user_id", 256), ("project_id", 256), ("memory_type", 32), ("source", 256)):
        schema.add_field(name, DataType.VARCHAR, max_length=length, is_partition_key=name == "user_id")
    for name in ("content", "metadata"):
        schema.add_field(name, DataType.VARCHAR, max_length=65_535)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=ROUTER_DIMENSION)
    for name in ("created_at", "updated_at", "access_count"):
        schema.add_field(name, DataType.INT64)
    schema.add_field("importance", DataType.FLOAT)
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="HNSW", metric_type="COSINE", params={"M": 16, "efConstruction": 256})
    client.create_collection(collection, schema=schema, index_params=index, num_partitions=16)


def stored_by_the_router(number: int, **fields: Any) -> dict[str, Any]:
    """As pkg/memory/milvus_store_columns.go writes a row."""
    shared = {"user_id": "ann", "importance": 0.0, "access_count": 0}
    metadata = json.dumps(shared | {"project_id": "", "source": "", "last_accessed": 5})
    times = dict.fromkeys(("created_at", "updated_at"), 1_700_000_000 + number)
    texts = {"content": f"fact {number}", "source": "extraction", "metadata": metadata, "memory_type": "semantic"}
    row = {"id": f"mem_{number:05}", "project_id": "default", "embedding": [0.1] * ROUTER_DIMENSION}
    return shared | row | texts | times | fields


@pytest.fixture
def _token(milvus: RealMilvus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", milvus.address("any", 1).access.token)


@pytest.fixture
def router(milvus: RealMilvus, collection: str, _token: None) -> Iterator[tuple[MilvusClient, str]]:
    client = milvus.client()
    create_collection(client, collection)
    yield client, collection
    client.drop_collection(collection)
    client.close()


def test_a_collection_of_the_semantic_router_becomes_memories_of_its_users(
    rest: str, router: tuple[MilvusClient, str], milvus: RealMilvus
) -> None:
    client, collection = router
    of_project = json.dumps({"project_id": "red", "importance": 0.3})
    rows = [stored_by_the_router(number) for number in range(1_050)]  # more than a page
    rows.append(stored_by_the_router(2_000, user_id="bob", memory_type="procedural", project_id="red"))
    rows[-1] |= {"metadata": of_project, "importance": 0.3, "content": "Deploys with make"}
    client.insert(collection, rows)
    words = (*FROM_ROUTER, milvus.uri, "--collection", collection, "--api", rest)
    assert told(*words, "--dry-run")["valid"] == 1_051
    assert told(*words, "--user", "bob")["imported"] == 1
    counts = {"imported": 1_050, "skipped": 1, "opted_out": 0, "incomplete": 0, "users": 2}
    assert told(*words) == counts
    (deploys,) = memories_of(rest, "bob")
    assert (deploys["content"], deploys["memory_type"]) == ("Deploys with make", "procedural")
    assert (deploys["project_id"], deploys["importance"]) == ("red", 0.3)
    newest = memories_of(rest, "ann")[0]
    assert (newest["content"], newest["project_id"], newest["importance"]) == ("fact 1049", None, 0.5)
    assert newest["said_at"] == "2023-11-14T22:30:49Z"


TURN = "Q: When does the ferry to Arran leave?\nA: At 7:00 & 9:45, from <Ardrossan>."
STORED_BY_THE_ROUTER = {
    "mem_1700000000000000001_1": ("episodic", "conversation", 0.5, TURN),
    "mem_1700000000000000002_2": ("episodic", "session_window", 0.7, f"{TURN}\n---\nQ: And back?\nA: At 18:00."),
    "mem_1700000000000000003_3": ("semantic", "", 0.0, "Keeps bees"),
    "mem_1700000000000000004_4": ("procedural", "consolidation", 0.9, "To deploy: make image\nmake push"),
}
SAID, RETRIEVED = 1_700_000_000, 1_763_870_000


def test_each_kind_of_the_routers_memories_keeps_its_time_when_it_was_retrieved_since(
    rest: str, router: tuple[MilvusClient, str], milvus: RealMilvus
) -> None:
    """`recordRetrieval` in pkg/memory/milvus_store_mutate.go writes the row anew, with `updated_at` of now."""
    client, collection = router
    for number, (key, (kind, source, importance, content)) in enumerate(STORED_BY_THE_ROUTER.items()):
        of_go = '{"access_count":%d,"importance":%s,"last_accessed":%d,"project_id":"","source":"%s","user_id":"ann"}'
        row = stored_by_the_router(number, id=key, memory_type=kind, content=content, project_id="")
        row |= {"metadata": of_go % (number, f"{importance:g}", RETRIEVED, source), "importance": importance}
        row |= {"source": source or "extraction", "created_at": SAID, "access_count": number}
        client.insert(collection, [row | {"updated_at": RETRIEVED if number else SAID}])
    words = (*FROM_ROUTER, milvus.uri, "--collection", collection, "--api", rest)
    assert told(*words)["imported"] == len(STORED_BY_THE_ROUTER)
    found = {one["metadata"].pop("import_key").partition(":")[2]: one for one in memories_of(rest, "ann")}
    assert {one["said_at"] for one in found.values()} == {"2023-11-14T22:13:20Z"}
    for number, (key, (kind, source, importance, content)) in enumerate(STORED_BY_THE_ROUTER.items()):
        one = found[key]
        assert (one["memory_type"], one["content"], one["project_id"]) == (kind, content, None)
        assert one["importance"] == (importance or 0.5)
        assert one["metadata"] == {"source": source or "extraction"} | ({"access_count": number} if number else {})


@pytest.mark.usefixtures("_token")
def test_a_collection_that_is_none_of_the_routers_is_named(milvus: RealMilvus, collection: str) -> None:
    words = (*FROM_ROUTER, milvus.uri, "--collection", collection)
    with pytest.raises(BadInput, match=f"has no collection '{collection}'"):
        run(*words)
    client = milvus.client()
    client.create_collection(collection, dimension=4)
    with pytest.raises(BadInput, match="it has no field 'user_id'"):
        run(*words)
    client.drop_collection(collection)
    client.close()


def test_what_is_logged_goes_to_standard_error() -> None:
    result = CliRunner().invoke(memproxy, [*FROM_ROUTER, NOBODY])
    assert isinstance(result.exception, Unavailable)
    assert (result.stdout, "milvus" in result.stderr) == ("", True)
