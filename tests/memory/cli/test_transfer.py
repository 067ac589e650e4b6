"""`memproxy export` and `import`: files with a server that checks the contract, stores of other systems with REST."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from export_server import HEADER, NOTHING_ELSE, ExportServer
from library_parts import Parts
from milvus_kinds import RealMilvus
from pymilvus import MilvusClient
from router_collections import create_collection, stored_by_the_router
from served_app import served
from served_library import served_library
from typer.testing import CliRunner, Result

from memory.cli import main
from memory.cli.api_client import ImportStopped
from memory.errors import BadInput, Unavailable
from memory.processes.composition import SYSTEM_CLOCK
from memory.service.imported_ids import imported_id

SENTENCE = (
    "stored: {}, present: {}, forgotten: 0, profiles: 0, turns: 0, messages: 0, raw_words: 0; "
    "lines that were not read: none\n"
)
MEM0_FOLDER = Path(__file__).parents[2] / "data" / "mem0"


def run(*words: object, code: int = 0) -> Result:
    runner = CliRunner(env={"COLUMNS": "200"})
    result = runner.invoke(main.commands, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def line(number: int, content: str = "tea") -> bytes:
    return msgspec.json.encode({"kind": "memory", "memory": {"id": f"m{number}", "content": content}}) + b"\n"


def imported(stored: int, *, present: int = 0, profiles: int = 0) -> dict[str, Any]:
    return {"stored": stored, "present": present, "forgotten": 0} | NOTHING_ELSE | {"profiles": profiles}


@pytest.fixture
def server() -> ExportServer:
    return ExportServer(stored={"ann": [line(number) for number in range(450)]})


@pytest.fixture
def url(server: ExportServer) -> Iterator[str]:
    with served(server.app()) as port:
        yield f"http://127.0.0.1:{port}"


def test_what_is_exported_is_what_the_api_gives_byte_for_byte(server: ExportServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    shown = run("export", "--user", "ann", "--api", url, "--output", file, "--json").stdout
    content = HEADER + b"".join(server.stored["ann"])
    assert json.loads(shown) == {"output": str(file), "memories": 450, "bytes": len(content)}
    assert file.read_bytes() == content
    assert run("export", "--user", "ann", "--api", url).stdout_bytes == content


def test_a_file_is_replaced_only_by_a_complete_one(server: ExportServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    file.write_bytes(b"the last export")
    server.lines_until_fault = 100
    with pytest.raises(Unavailable, match="broke off after"):
        run("export", "--user", "ann", "--api", url, "--output", file)
    assert [one.name for one in tmp_path.iterdir()] == ["ann.jsonl"]
    assert file.read_bytes() == b"the last export"
    with pytest.raises(BadInput, match="cannot write"):
        run("export", "--user", "ann", "--api", url, "--output", tmp_path / "none" / "ann.jsonl")


def test_import_sends_what_export_wrote_in_batches_and_nothing_twice(
    server: ExportServer, url: str, tmp_path: Path
) -> None:
    file = tmp_path / "ann.jsonl"
    run("export", "--user", "ann", "--api", url, "--output", file)
    words = ("import", file, "--user", "bob", "--api", url, "--json")
    assert json.loads(run(*words, "--dry-run").stdout) == {"is_dry_run": True, "valid": 450}
    assert "bob" not in server.stored
    assert json.loads(run(*words).stdout) == imported(450)
    assert server.stored["bob"] == server.stored["ann"]
    calls = [(count, first) for kind, _, count, first in server.calls if kind == "import"]
    assert calls == [(200, 2), (200, 202), (50, 402)]
    assert json.loads(run(*words).stdout) == imported(0, present=450)


def test_an_import_that_broke_off_goes_on_when_it_is_repeated(server: ExportServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    file.write_bytes(
        b"\n".join([HEADER.strip(), *(one.strip() for one in server.stored["ann"]), b"", b""])
    )  # empty lines are none
    server.lines_until_fault = 200
    with pytest.raises(ImportStopped, match=r"after 200 memories.*nothing is stored twice"):
        run("import", file, "--user", "bob", "--api", url)
    assert run("import", file, "--user", "bob", "--api", url).stdout == SENTENCE.format(250, 200)
    assert server.stored["bob"] == server.stored["ann"]


def test_no_call_is_larger_than_the_api_takes(server: ExportServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(HEADER + b"".join(line(number, "x" * 400_000) for number in range(5)))
    run("import", file, "--user", "bob", "--api", url)
    assert [count for kind, _, count, _ in server.calls if kind == "import"] == [2, 2, 1]
    file.write_bytes(HEADER + line(1) + line(2, "x" * (16 << 20)))
    with pytest.raises(BadInput, match=r"line 3 of long\.jsonl has more than"):
        run("import", file, "--user", "eve", "--api", url)


def test_what_is_no_export_is_refused_with_its_line(server: ExportServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_bytes(HEADER + b"".join(map(line, range(250))) + b"[1]\n")
    with pytest.raises(BadInput, match=r"line 252 of odd\.jsonl is not a JSON object"):
        run("import", file, "--user", "bob", "--api", url)
    file.write_bytes(line(1))
    with pytest.raises(BadInput, match=r"line 1 of odd\.jsonl is not the line that an export begins with"):
        run("import", file, "--user", "bob", "--api", url)
    assert "bob" not in server.stored
    run("import", file, "--api", url, code=2)  # whose?
    run("import", "--user", "bob", "--api", url, code=2)  # what?
    run("import", file, "--from", "semantic-router", "--milvus-uri", "http://x", code=2)


# Through the real REST API


def test_an_export_is_imported_elsewhere_as_it_was(rest: str, tmp_path: Path) -> None:
    file, again = tmp_path / "mem0.json", tmp_path / "again.jsonl"
    file.write_text(json.dumps(MEM0))
    run("import", file, "--from", "mem0", "--user", "ann", "--api", rest)
    run("export", "--user", "ann", "--api", rest, "--output", tmp_path / "ann.jsonl")
    words = ("import", tmp_path / "ann.jsonl", "--user", "ann", "--json")
    assert json.loads(run(*words, "--api", rest).stdout) == imported(0, present=2)
    with library_in(tmp_path / "elsewhere") as other:
        assert json.loads(run(*words, "--api", other).stdout) == imported(2)
        run("export", "--user", "ann", "--api", other, "--output", again)
    exported = (tmp_path / "ann.jsonl").read_text()
    for line in exported.splitlines():
        memory_id = json.loads(line).get("memory", {}).get("id", "")
        exported = exported.replace(memory_id, imported_id("ann", memory_id)) if memory_id else exported
    assert sorted(again.read_text().splitlines()) == sorted(exported.splitlines())


def test_an_export_of_more_than_one_call_is_imported_elsewhere(rest: str, tmp_path: Path) -> None:
    rows, file = tmp_path / "rows.jsonl", tmp_path / "ann.jsonl"
    rows.write_text("".join(json.dumps({"user": "ann", "text": f"Likes tea number {n}"}) + "\n" for n in range(230)))
    run("bootstrap", rows, "--user-column", "user", "--content-template", "{text}", "--api", rest)
    run("export", "--user", "ann", "--api", rest, "--output", file)
    with library_in(tmp_path / "elsewhere") as other:
        shown = run("import", file, "--user", "ann", "--json", "--api", other).stdout
    assert json.loads(shown) == imported(230)


def test_a_line_that_the_api_refuses_is_named_by_its_number_in_the_file(rest: str, tmp_path: Path) -> None:
    rows, file = tmp_path / "rows.jsonl", tmp_path / "ann.jsonl"
    rows.write_text("".join(json.dumps({"user": "ann", "text": f"Likes tea number {n}"}) + "\n" for n in range(230)))
    run("bootstrap", rows, "--user-column", "user", "--content-template", "{text}", "--api", rest)
    run("export", "--user", "ann", "--api", rest, "--output", file)
    lines = file.read_bytes().splitlines()
    lines[220] = json.dumps({"kind": "memory", "memory": {"id": "x"}}).encode()
    file.write_bytes(b"\n".join([*lines[:100], b"", *lines[100:], b'{"kind":"drawing"}']))
    with library_in(tmp_path / "elsewhere") as other:
        words = ("import", file, "--user", "bob", "--api", other)
        with pytest.raises(ImportStopped, match=r"after 199 memories: line 222 is not one of an export"):
            run(*words)
        profile = b'{"kind":"profile","pinned":["Be brief"]}'
        file.write_bytes(b"\n".join([*lines[:220], *lines[221:], b'{"kind":"drawing"}', profile]))
        counts = imported(30, present=199, profiles=1) | {"unread": {"drawing": 1}}
        assert json.loads(run(*words, "--json").stdout) == counts
        assert "not read: 1 of 'drawing'" in run(*words).stdout


# The stores of other systems

MEM0 = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Likes to play cricket",
            "hash": "4f8ab9b3d8e1f4a1c0f0a4c2d1b7c6d5",
            "metadata": {"category": "hobbies"},
            "created_at": "2024-07-20T01:30:36.275141-07:00",
            "updated_at": None,
            "user_id": "ann",
        },
        {
            "id": "b2ae06d9-49e5-4b3e-885e-f9b85b8e892d",
            "memory": "Name is Bo",
            "hash": "d1b7c6d54f8ab9b3d8e1f4a1c0f0a4c2",
            "metadata": None,
            "created_at": "2024-07-20T01:30:36.275141-07:00",
            "updated_at": "2024-08-01T00:00:00+00:00",
            "user_id": "bob",
            "run_id": "trip",
        },
        {"id": "3", "memory": "Has two cats", "created_at": "2024-07-20T01:30:36Z"},
    ]
}


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


def memories(rest: str, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("list", "--user", user, "--api", rest, "--json").stdout)["memories"]
    return found


def test_what_mem0_gives_becomes_memories_of_its_users(rest: str, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps(MEM0))
    with pytest.raises(BadInput, match="entry 3: it names no user: give --user"):
        run("import", file, "--from", "mem0", "--api", rest)
    assert memories(rest, "ann") == []
    words = ("import", file, "--from", "mem0", "--user", "ann", "--api", rest, "--json")
    assert json.loads(run(*words).stdout) == {"imported": 2, "skipped": 0, "opted_out": 0, "incomplete": 0, "users": 1}
    assert json.loads(run(*words).stdout)["imported"] == 0
    cricket, cats = memories(rest, "ann")
    assert (cats["content"], cricket["content"]) == ("Has two cats", "Likes to play cricket")
    assert (cricket["said_at"], cricket["metadata"]["category"]) == ("2024-07-20T08:30:36Z", "hobbies")
    file.write_text(json.dumps(MEM0["results"][:2]))  # the list alone, as older releases gave it
    assert json.loads(run("import", file, "--from", "mem0", "--api", rest, "--json").stdout)["imported"] == 1
    (name,) = memories(rest, "bob")
    assert (name["content"], name["session_id"], name["said_at"]) == ("Name is Bo", "trip", "2024-08-01T00:00:00Z")


def test_a_store_that_mem0_wrote_becomes_memories(rest: str) -> None:
    for user, count in (("ann", 3), ("bob", 1), ("clara", 4), ("dirk", 26)):
        file = MEM0_FOLDER / f"{user}.json"
        shown = run("import", file, "--from", "mem0", "--api", rest, "--json").stdout
        assert json.loads(shown)["imported"] == count
        stored = json.loads(file.read_text())["results"]
        found = {one["content"]: one for one in memories(rest, user)}
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
    (deploys,) = memories(rest, "team")
    assert (deploys["content"], deploys["agent_id"]) == ("The team deploys on Tuesdays", "ops")


def test_nothing_is_imported_for_a_user_who_has_opted_out(rest: str, tmp_path: Path) -> None:
    file, own = tmp_path / "mem0.json", tmp_path / "bob.jsonl"
    file.write_text(json.dumps(MEM0["results"][:2]))
    own.write_bytes(HEADER + b'{"kind":"profile","pinned":["Be brief"]}\n')
    since = json.loads(run("opt-out", "--user", "bob", "--api", rest, "--json").stdout)
    assert since["opted_out"]
    shown = run("import", file, "--from", "mem0", "--api", rest, "--json").stdout
    assert json.loads(shown) == {"imported": 1, "skipped": 0, "opted_out": 1, "incomplete": 0, "users": 2}
    assert (len(memories(rest, "ann")), memories(rest, "bob")) == (1, [])
    with pytest.raises(BadInput, match="opted out"):
        run("import", own, "--user", "bob", "--api", rest)
    assert run("opt-in", "--user", "bob", "--api", rest).stdout == "memory is on\n"
    assert json.loads(run("import", own, "--user", "bob", "--api", rest, "--json").stdout)["profiles"] == 1


def test_mem0s_own_limit_is_pointed_out(rest: str, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"id": str(number), "memory": f"fact {number}"} for number in range(20)]))
    words = ("import", file, "--from", "mem0", "--user", "ann", "--api", rest, "--dry-run")
    assert "top_k" in run(*words).stderr
    file.write_text(json.dumps([{"id": "1", "memory": "fact"}]))
    assert "top_k" not in run(*words).stderr


def found_of(rest: str, user: str, content: str) -> dict[str, Any]:
    (one,) = [memory for memory in memories(rest, user) if memory["content"] == content]
    return one


@pytest.mark.parametrize("content", ["no JSON", '{"memories": []}', '"results"'])
def test_what_mem0_never_wrote_is_refused(rest: str, tmp_path: Path, content: str) -> None:
    (tmp_path / "mem0.json").write_text(content)
    with pytest.raises(BadInput, match="JSON"):
        run("import", tmp_path / "mem0.json", "--from", "mem0", "--user", "ann", "--api", rest)


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
    words = ("import", "--from", "semantic-router", "--milvus-uri", milvus.uri, "--api", rest, "--json")
    words = (*words, "--collection", collection)
    assert json.loads(run(*words, "--dry-run").stdout)["valid"] == 1_051
    assert json.loads(run(*words, "--user", "bob").stdout)["imported"] == 1
    counts = {"imported": 1_050, "skipped": 1, "opted_out": 0, "incomplete": 0, "users": 2}
    assert json.loads(run(*words).stdout) == counts
    (deploys,) = memories(rest, "bob")
    assert (deploys["content"], deploys["memory_type"]) == ("Deploys with make", "procedural")
    assert (deploys["project_id"], deploys["importance"]) == ("red", 0.3)
    newest = memories(rest, "ann")[0]
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
    words = ("import", "--from", "semantic-router", "--milvus-uri", milvus.uri, "--api", rest, "--json")
    assert json.loads(run(*words, "--collection", collection).stdout)["imported"] == len(STORED_BY_THE_ROUTER)
    found = {one["metadata"].pop("import_key").partition(":")[2]: one for one in memories(rest, "ann")}
    assert {one["said_at"] for one in found.values()} == {"2023-11-14T22:13:20Z"}
    for number, (key, (kind, source, importance, content)) in enumerate(STORED_BY_THE_ROUTER.items()):
        one = found[key]
        assert (one["memory_type"], one["content"], one["project_id"]) == (kind, content, None)
        assert one["importance"] == (importance or 0.5)
        assert one["metadata"] == {"source": source or "extraction"} | ({"access_count": number} if number else {})


@pytest.mark.usefixtures("_token")
def test_a_collection_that_is_none_of_the_routers_is_named(milvus: RealMilvus, collection: str) -> None:
    words = ("import", "--from", "semantic-router", "--milvus-uri", milvus.uri, "--collection", collection)
    with pytest.raises(BadInput, match=f"has no collection '{collection}'"):
        run(*words)
    client = milvus.client()
    client.create_collection(collection, dimension=4)
    with pytest.raises(BadInput, match="it has no field 'user_id'"):
        run(*words)
    client.drop_collection(collection)
    client.close()
    with pytest.raises(Unavailable, match="milvus"):
        run(*words[:3], "--milvus-uri", "http://127.0.0.1:1")


def test_what_is_logged_goes_to_standard_error() -> None:
    words = ["import", "--from", "semantic-router", "--milvus-uri", "http://127.0.0.1:1"]
    result = CliRunner().invoke(main.commands, words)
    assert isinstance(result.exception, Unavailable)
    assert (result.stdout, "milvus" in result.stderr) == ("", True)
