"""Erases a user of the running product, or a project, then looks for their words in every file, log and metric."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from product import Product, eventually
from turn_logs import sqlite_deployment
from upstream import RecordingUpstream
from whole_lives import assert_a_project_is_erased, erased_by_command, live, verified_by_command
from words_left import files_with

USER, OTHER = "user-who-leaves-7f3a", "user-who-stays-91cd"
WORD, OTHER_WORD = "Pangolinquartz", "Marmotwexley"


@pytest.mark.slow("two lives of users, and all files of the product read")
def test_of_an_erased_user_no_byte_is_left_in_any_file_and_others_keep_everything(
    shared_product: Product, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    product, data, config = shared_product, shared_product.data_dir, tmp_path / "memproxy.yaml"
    config.write_text(f"data_dir: {data}")
    live(product, OTHER, OTHER_WORD)
    live(product, USER, WORD)
    kept = sorted(product.memories(OTHER))
    assert len(kept) >= 2
    tables_with = sqlite_deployment(data).places_with
    assert "turns" in tables_with(WORD)
    assert any(name.startswith("milvus/") for name in files_with([data], [WORD]))

    [files] = verified_by_command(product, USER, config, is_clean=False).values()
    assert "turns.sqlite" in files["found_in"]
    assert any(name.startswith("milvus/") for name in files["found_in"])

    erasure = erased_by_command(product, "--user", USER)
    assert erasure["state"] == "rewritten", erasure
    assert erasure["deleted"]["memories"] >= 2
    assert USER not in json.dumps(erasure)
    for user in (USER, USER[5:], USER[:-5]):  # parts of their ids are no ids
        [files] = verified_by_command(product, user, config).values()
        assert (files["place"], files["items"] > 5, files["not_searched"]) == ("files", True, [])

    assert tables_with(USER) == tables_with(WORD) == []
    places = [data, product.log_file, product.ports_file]
    assert files_with(places, [USER, WORD, WORD.lower()]) == []
    metrics = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text
    assert "memproxy_erasures_waiting_seconds" in metrics
    assert not [word for word in (USER, WORD) if word in metrics]
    assert product.memories(USER) == []

    product.ask("What is my parrot called?", USER, session_id="s-new")  # a filter that had their working set
    assert WORD.encode() not in upstream.last_chat().body
    product.chat("My cat is called Gloomsbury.", USER, session_id="s-new")
    product.flush(USER)
    back = product.memories(USER)
    assert any("Gloomsbury" in one for one in back), back
    assert not [one for one in back if WORD in one]
    assert sorted(product.memories(OTHER)) == kept
    eventually(lambda: files_with(places, [WORD]) == [])


@pytest.mark.full("the work of a user on two projects, and all files of the product read")
def test_of_an_erased_project_no_byte_is_left_and_the_other_project_keeps_everything(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    assert_a_project_is_erased(shared_product, upstream, files=[])
