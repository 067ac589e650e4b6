"""Prepares the statement encoder: our low-rank factors merged into the packaged weights, exported, in 8 bits.

The repository contains the difference to the packaged encoder (`memory/learn/reading/weights.npz`) and the heads. It is
merged once per release; torch is needed for that only.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from memory.adapters.models import packaged_encoder
from memory.adapters.models.prepared_models import export_in_8_bits, made_once
from memory.errors import BadSetting
from memory.learn.reading.labels import HEADS

FORMAT = 7  # of the folder: increase it when its content changes
VERSION_CHARACTERS = 12
WORDS_CHARACTERS_MAX = 200  # of a library's error message
_SHIPPED = "weights.npz"
EXPECTED = (
    "expected memory/learn/reading/weights.npz as this release ships it: reinstall the package, or make it with "
    "`python bench/reader/train.py`, or set memory.learn.reader to model or off"
)


def shipped() -> Any:  # noqa: ANN401 - a Traversable
    return files("memory.learn.reading") / _SHIPPED


def version_of(weights: Path) -> str:
    digest = hashlib.sha256(weights.read_bytes())
    digest.update(f"{FORMAT}\x1f{packaged_encoder.SHA256}".encode())
    return digest.hexdigest()[:VERSION_CHARACTERS]


def prepared(models_dir: Path, weights: Path | None = None) -> Path:
    """The folder of the merged encoder, created now if missing (10 to 20 s). Raises `BadSetting`."""
    if weights is None:
        if not shipped().is_file():
            raise BadSetting(f"the package holds no weights of the trained reader: {EXPECTED}")
        with as_file(shipped()) as path:
            return prepared(models_dir, path)
    version = version_of(weights)
    base = packaged_encoder.folder_of(models_dir).name
    folder = made_once(folder_of(models_dir, version), partial(_make, weights, version, base))
    packaged_encoder.prepared(models_dir)
    return folder


def folder_of(models_dir: Path, version: str) -> Path:
    return models_dir / f"reader-{version}"


def _make(weights: Path, version: str, base: str, folder: Path) -> None:
    try:
        with weights.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            card = json.loads(str(arrays["card"]))
            heads = {name.removeprefix("head/"): arrays[name] for name in arrays.files if name.startswith("head/")}
            if missing := {f"{head}/weight" for head in HEADS} - heads.keys():
                raise LookupError(f"no head {min(missing).partition('/')[0]}")
            np.savez(folder / "heads.npz", **heads)
            _export(_merged(_products(arrays)), folder)
        (folder / "card.json").write_text(json.dumps({**card, "version": version, "base": base}), encoding="utf-8")
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


def _merged(products: dict[str, Any]) -> Any:  # noqa: ANN401 - a BertModel; its import takes 10 s
    import torch

    model = packaged_encoder.Archive().bert()
    state = model.state_dict()
    for key, product in products.items():
        state[key] = state[key] + torch.from_numpy(product)
    model.load_state_dict(state)
    return model.eval()


def _export(model: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    import torch

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = packaged_encoder.with_outliers_apart(model)

        def forward(self, embeddings: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = self.inner(
                inputs_embeds=embeddings, attention_mask=mask, token_type_ids=segments
            ).last_hidden_state
            return hidden

    inputs = (packaged_encoder.EMBEDDINGS, "attention_mask", "token_type_ids")
    example = {name: torch.ones(2, 8, dtype=torch.int64) for name in inputs}
    example[packaged_encoder.EMBEDDINGS] = torch.ones(2, 8, model.config.hidden_size)
    export_in_8_bits(
        Hidden(),
        example,
        folder / "encoder.onnx",
        output="hidden",
        axes={name: {0: "windows", 1: "tokens"} for name in (*inputs, "hidden")},
    )
