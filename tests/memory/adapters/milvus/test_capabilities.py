"""What a Milvus can do, by the version that it reports."""

from __future__ import annotations

import pytest

from memory.adapters.milvus.capabilities import LITE, capabilities_of


@pytest.mark.parametrize(
    ("version", "finds_words", "text_index"),
    [
        ("v2.3.5-lite", False, "Trie"),
        ("v2.4.0", True, "INVERTED"),
        ("2.6.0-rc1", True, "INVERTED"),
        ("3", True, "INVERTED"),
    ],
)
def test_servers_before_2_4_find_no_text_within_a_text(version: str, finds_words: bool, text_index: str) -> None:
    can = capabilities_of(version)
    assert (can.finds_words, can.text_index) == (finds_words, text_index)
    assert can.partitions_users


def test_only_what_calls_itself_milvus_lite_is_milvus_lite() -> None:
    assert capabilities_of("milvus_lite-3.2.2") == LITE
    assert capabilities_of("v2.3.5-lite") != LITE
