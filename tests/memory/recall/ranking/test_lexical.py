"""Terms: what two texts must share to meet, and what must not make them meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.ranking.lexical import TERMS_PER_TEXT_MAX, fold, stem, terms, unspaced_share


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painting", "painted"),
        ("hobbies", "hobby"),
        ("Anna's", "Anna"),
        ("running", "runs"),
        ("Katzen", "Katze"),
        ("gatos", "gato"),
        ("Café", "cafe"),
        ("ＡＢＣ１２", "abc12"),
    ],
)
def test_forms_of_one_word_meet(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


def test_an_identifier_stays_whole_beside_its_parts() -> None:
    assert "ops-4412" in terms("Ticket OPS-4412 is open")
    assert "petrel_stg" in terms("the database petrel_stg")
    assert "7.3.1" in terms("build 7.3.1")
    assert "7.3.1" not in terms("build 7.3.10")


def test_words_that_build_sentences_are_no_terms() -> None:
    assert terms("What is it that you would like me to do with the user?") == []


def test_chinese_gives_single_characters_and_pairs_but_no_sentence_builders() -> None:
    found = terms("用户的车是白色电动车")
    assert {"车", "白色", "电动", "动车"} <= set(found)
    assert not {"的", "是", "用户"} & set(found)


def test_the_share_of_unspaced_script_tells_what_the_embedding_model_cannot_read() -> None:
    assert unspaced_share("只有中文") == 1.0
    assert unspaced_share("English only") == 0.0
    assert unspaced_share("1234 !?") == 0.0
    assert 0.0 < unspaced_share("用 R 画图 plots") < 1.0


def test_stems_never_vanish() -> None:
    for word in ("is", "as", "ed", "ing", "seed", "bus", "news", "ten", "lily"):
        assert stem(word)


@given(st.text(max_size=300))
def test_any_text_gives_bounded_terms_and_folding_twice_changes_nothing(text: str) -> None:
    found = terms(text)
    assert len(found) <= TERMS_PER_TEXT_MAX
    assert all(found)
    assert terms(fold(text)) == found or fold(fold(text)) != fold(text)


def test_a_very_long_text_is_cut_at_the_bound() -> None:
    assert len(terms("龙" * 8_000)) == TERMS_PER_TEXT_MAX
