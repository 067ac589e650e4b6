"""The trained reader's weights: what they were made of, how they are made ready, and what the encoder promises."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from trained_reader import statement_encoder

from memory.adapters.models import reader_weights
from memory.adapters.models.reader_weights import prepared, version_of
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.errors import BadSetting
from memory.learn.reading.labels import ACTS, ATTRIBUTE_NAMES, PAIR_RELATIONS

ROOT = Path(__file__).parents[4]
WEIGHTS = ROOT / "memory" / "learn" / "reading" / "weights.npz"
WEIGHTS_BYTES_MAX = 4_000_000


def test_the_weights_are_small_and_say_which_texts_they_were_made_of() -> None:
    sys.path.insert(0, str(ROOT / "bench" / "reader"))
    try:
        from fingerprint import PAIRS_FOLDER, fingerprint
    finally:
        sys.path.pop(0)
    with np.load(WEIGHTS, allow_pickle=False) as arrays:
        card = json.loads(str(arrays["card"]))
    assert (card["texts"], card["pairs"]) == (fingerprint(), fingerprint(PAIRS_FOLDER))
    assert WEIGHTS.stat().st_size <= WEIGHTS_BYTES_MAX


@pytest.mark.full("exports a model with torch")
def test_what_is_damaged_is_made_again_and_works(tmp_path: Path) -> None:
    folder = tmp_path / f"reader-{version_of(WEIGHTS)}"
    folder.mkdir()  # empty: an earlier release took that for prepared
    assert prepared(tmp_path, WEIGHTS) == folder
    assert OnnxStatementEncoder(folder).judge(["I live in Leeds."], "")
    made = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert prepared(tmp_path, WEIGHTS) == folder  # and costs nothing the second time
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == made


@pytest.mark.full("exports a model with torch")
@pytest.mark.parametrize("name", ["a", "b", "rows", "characters", "card"])
def test_weights_of_another_shape_or_without_a_part_are_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    with np.load(WEIGHTS, allow_pickle=False) as arrays:
        held = dict(arrays)
    key = next(key for key in held if key == name or key.endswith(f"/{name}"))
    if held[key].ndim:
        held[key] = held[key][1:]
    else:
        del held[key]
    np.savez(tmp_path / "foreign.npz", **held)
    with pytest.raises(BadSetting, match=r"foreign.*expected memory/learn/reading/weights\.npz.*train\.py"):
        prepared(tmp_path / "models", tmp_path / "foreign.npz")
    assert list((tmp_path / "models").iterdir()) == []


def test_missing_weights_say_what_was_expected_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_weights, "shipped", lambda: tmp_path / "weights.npz")
    with pytest.raises(BadSetting, match=r"weights\.npz.*train\.py"):
        prepared(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no weights", b"PK\x03\x04"])
def test_foreign_weights_are_refused_and_leave_nothing_behind(tmp_path: Path, content: bytes) -> None:
    foreign = tmp_path / "foreign.npz"
    foreign.write_bytes(content)
    with pytest.raises(BadSetting, match=r"foreign.*expected.*train\.py"):
        prepared(tmp_path / "models", foreign)
    assert [path for path in (tmp_path / "models").iterdir() if path.is_dir()] == []


def test_each_unit_gets_one_judgement_whose_acts_add_up_to_one() -> None:
    judged = statement_encoder().judge(["I live in Leeds.", "What is the capital of Peru?"], "")
    assert len(judged) == 2
    assert all(set(one.acts) == set(ACTS) for one in judged)
    assert [round(sum(one.acts.values()), 3) for one in judged] == [1.0, 1.0]
    assert judged[0].attribute in ATTRIBUTE_NAMES


def test_what_is_said_of_a_pair_does_not_depend_on_what_else_is_asked() -> None:
    encoder = statement_encoder()
    pairs = [
        ("My budget is $2,000.", "My budget is now $6,000 instead."),
        (
            "I live in Leeds.",
            "Since May I have been living in a small flat above the bakery in Oslo, near the harbour.",
        ),
        ("My kayak is behind the garage.", "My kiln is at the lake house."),
    ]
    alone = np.concatenate([encoder.relate([pair]) for pair in pairs])
    assert np.array_equal(encoder.relate(pairs), alone)
    assert np.array_equal(encoder.relate(pairs[::-1]), alone[::-1])


def test_what_does_not_fit_into_the_same_window_changes_no_judgement() -> None:
    encoder = statement_encoder()
    texts = ["I live in Leeds.", *["Tell me more about the history of that town, please."] * 40]
    assert encoder.judge(texts[:21], "")[0] == encoder.judge(texts, "")[0]


def test_no_text_at_all_is_no_judgement() -> None:
    assert statement_encoder().judge([], "before") == []
    assert statement_encoder().relate([]).shape == (0, len(PAIR_RELATIONS))


def test_what_is_half_a_character_is_read_all_the_same() -> None:
    assert len(statement_encoder().judge(["I live in \ud800 Leeds"], "\udfff")) == 1
