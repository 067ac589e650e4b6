"""Erases a user of a product on a PostgreSQL and a Milvus server, then looks for them wherever it keeps anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from milvus_standalone import TOKEN, MilvusServer
from postgres_server import PostgresServer, own_postgres_server
from product import running_product
from upstream import RecordingUpstream
from whole_lives import call, erased_by_command, live, verified_by_command
from words_left import files_with

USER, OTHER = "user-who-leaves-8b2c", "user-who-stays-04ef"
WORD, OTHER_WORD = "Quetzalbimxford", "Wombatlyxenham"


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with own_postgres_server() as server:
        yield server


def rows_with(server: MilvusServer, words: list[str]) -> list[str]:
    """Collections with rows that hold one of them, in any field but the vector."""
    client, found = server.client(), []
    for name in client.list_collections():
        client.load_collection(name)
        fields = [one["name"] for one in client.describe_collection(name)["fields"] if one["name"] != "embedding"]
        rows = client.query(name, filter='id > ""', output_fields=fields, limit=10_000, consistency_level="Strong")
        found += [name for row in rows if any(word in repr(dict(row)) for word in words)]
    client.close()
    return sorted(set(found))


def test_of_an_erased_user_nothing_is_left_on_the_servers_and_the_look_says_what_it_could_not_read(
    milvus_server: MilvusServer, collection: str, postgres: PostgresServer, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with (
        milvus_server.configured(tmp_path, collection) as config,
        running_product(data, "--database-url", postgres.url, upstream=upstream.url, config=config) as product,
    ):
        assert product.children("milvus-lite") == []
        assert product.ports["milvus"] == milvus_server.port
        live(product, OTHER, OTHER_WORD)
        live(product, USER, WORD)
        assert TOKEN not in product.log()
        kept = sorted(product.memories(OTHER))
        assert len(kept) >= 2
        receipts = call(product, "GET", "/receipts", USER).json()["receipts"]
        assert receipts != []
        assert postgres.tables_with(USER) != []
        assert postgres.tables_with(WORD) != []
        assert rows_with(milvus_server, [USER, WORD]) == [collection]
        for number in range(3):  # the worker is at it, or about to be, when they are erased
            product.chat(f"My {number}th parrot is called {WORD}.", USER, session_id=f"s-{number}")

        erasure = erased_by_command(product, "--user", USER)
        assert erasure["state"] == "rewritten", erasure
        assert USER not in repr(erasure)
        settings = tmp_path / "verify.yaml"
        here = {"data_dir": str(data), "database_url": postgres.url}
        settings.write_text(json.dumps(json.loads(config.read_text()) | here))
        places = verified_by_command(product, USER, settings)
        assert {name: one["found_in"] for name, one in places.items()} == {"files": [], "postgres": [], "milvus": []}
        assert all(one["items"] > 0 for one in places.values())
        assert [places[name]["not_searched"] for name in ("files", "postgres")] == [[], []]
        [unread] = places["milvus"]["not_searched"]
        assert "dataCoord.gc" in unread

        words = [USER, WORD]
        assert [postgres.tables_with(word) for word in words] == [[], []]
        assert rows_with(milvus_server, words) == []
        files = [data, product.log_file, product.ports_file, *postgres.table_files()]
        assert files_with(files, [*words, WORD.lower()]) == []
        metrics = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text
        assert not [word for word in words if word in metrics]

        for receipt in receipts:
            path = f"{product.api}/v1/memory/receipts/{receipt['id']}"
            assert httpx.get(path, params={"user_id": USER}, timeout=30).status_code == 404
        product.ask("What is my parrot called?", USER, session_id="s-new")  # a filter that had their working set
        assert WORD.encode() not in upstream.received[-1].body
        assert product.flush(USER)["pending"] == 0  # what waited to be learnt is not
        assert not [one for one in product.memories(USER) if WORD in one]
        assert postgres.tables_with(WORD) == []
        assert rows_with(milvus_server, [WORD]) == []
        assert sorted(product.memories(OTHER)) == kept
