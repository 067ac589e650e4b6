"""Models on ONNX Runtime: one session on the CPU, as every part of ours opens it. It never sees torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def cpu_session(path: Path, *, threads: int = 1) -> Any:  # noqa: ANN401 - an InferenceSession, which has no types
    """The model in that file. `threads` work on one call; calls may come from several threads and hold no interpreter
    while they run.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are not ours alone
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


__all__ = ["cpu_session"]
