"""Prepares the embedding model: exported once to ONNX, from tokens to a unit vector, in 8 bits.

The packaged model is unpacked from its wheel. Any other one is loaded by sentence-transformers: a folder, or a name on
the hub if there is a network. Only `prepared` downloads or exports anything.
"""

from __future__ import annotations

import hashlib
import logging
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from memory.adapters.models import packaged_encoder
from memory.adapters.models.packaged_encoder import PACKAGED_MODEL
from memory.adapters.models.prepared_models import export_in_8_bits, made_once
from memory.errors import BadSetting
from memory.typed import from_json

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
ENCODER, CARD, TOKENIZER = "encoder.onnx", "card.json", "tokenizer.json"
FORMAT = 6  # of the folder: increase it when its content changes
VERSION_CHARACTERS = 12
TOKENS_MAX = 512  # per text, if the model has no limit or a higher one: a memory is a sentence or two
HUB_OWNER = "sentence-transformers/"  # may be left out of a name on the hub


class Card(msgspec.Struct, frozen=True):
    """The description of a prepared model. `inputs`: in the encoder's order; `prompts`: its prefixes by kind of text.

    `fingerprint`: see `fingerprint_of`. `base`: the folder beside it with the tokenizer and the table of tokens, if the
    encoder takes embeddings of tokens and not their numbers; "" for a model that holds its own.
    """

    model: str
    dimension: int
    tokens_max: int
    inputs: tuple[str, ...]
    prompts: dict[str, str] = {}
    fingerprint: str = ""
    base: str = ""


def card_of(folder: Path) -> Card:
    return from_json((folder / CARD).read_bytes(), Card)


def prepared(model: str, models_dir: Path) -> Path:
    """The folder with encoder, tokenizer and card, created now if missing (5 to 30 s). Raises `BadSetting`."""
    folder = folder_of(model, models_dir)
    if model == PACKAGED_MODEL:
        base = packaged_encoder.prepared(models_dir)
        return made_once(folder, partial(_make_packaged, base.name))
    return made_once(folder, partial(_make, model))


def folder_of(model: str, models_dir: Path) -> Path:
    """The folder, whether or not the model has been prepared."""
    weights = packaged_encoder.fingerprint() if model == PACKAGED_MODEL else _state(model)
    version = hashlib.sha256(f"{FORMAT}\x1f{model}\x1f{weights}".encode())
    name = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in Path(model).name)
    return models_dir / f"embedding-{name}-{version.hexdigest()[:VERSION_CHARACTERS]}"


def usual_name(model: str) -> str:
    """One name for a model with two: on the hub, that of the models' own library may be left out."""
    return model.removeprefix(HUB_OWNER)


def _state(source: str) -> str:
    """Changes when the weights in a folder do; "" for a name on the hub."""
    files = [Path(source) / name for name in WEIGHTS]
    return ";".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file())


def check_weights(folder: Path) -> None:
    """Raises `BadSetting` if the folder holds no weights."""
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise BadSetting(f"{folder} holds no weights: expected {' or '.join(WEIGHTS)}")


def _make_packaged(base: str, folder: Path) -> None:
    import torch

    archive, centre = packaged_encoder.Archive(), packaged_encoder.centre()
    normalized = torch.nn.functional.normalize

    class Centred(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = packaged_encoder.with_outliers_apart(archive.bert())
            self.register_buffer("mean", torch.from_numpy(centre.mean))
            self.register_buffer("directions", torch.from_numpy(centre.directions))

        def forward(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            hidden = self.inner(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
            counted = mask[..., None].to(hidden.dtype)
            left = normalized((hidden * counted).sum(1) / counted.sum(1), dim=-1) - self.get_buffer("mean")
            directions = self.get_buffer("directions")
            along = (left[:, None] * directions).sum(-1)  # the quantiser would round a matrix product
            return normalized(left - (along[..., None] * directions).sum(1), dim=-1)

    width = archive.shape.width
    inputs = (packaged_encoder.EMBEDDINGS, "attention_mask")
    example = dict(zip(inputs, (torch.ones(2, 8, width), torch.ones(2, 8, dtype=torch.int64)), strict=True))
    axes = {name: {0: "texts", 1: "tokens"} for name in inputs} | {"vector": {0: "texts"}}
    export_in_8_bits(Centred().eval(), example, folder / ENCODER, output="vector", axes=axes)
    card = Card(
        model=PACKAGED_MODEL,
        dimension=width,
        tokens_max=packaged_encoder.TOKENS_MAX,
        inputs=inputs,
        prompts=packaged_encoder.PROMPTS,
        fingerprint=packaged_encoder.fingerprint(),
        base=base,
    )
    (folder / CARD).write_bytes(msgspec.json.encode(card))


def _make(model: str, folder: Path) -> None:
    if Path(model).is_dir():
        check_weights(Path(model))
    transformer = _opened(model)
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


def _opened(model: str) -> Any:  # noqa: ANN401 - a SentenceTransformer; importing its type takes 10 s
    from sentence_transformers import SentenceTransformer

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    try:
        return SentenceTransformer(
            model,
            device="cpu",
            local_files_only=Path(model).is_dir(),
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
    example = {name: torch.ones(2, 8, dtype=torch.int64) for name in inputs}
    export_in_8_bits(Whole().eval(), example, folder / ENCODER, output="vector", axes=axes)
    return inputs
