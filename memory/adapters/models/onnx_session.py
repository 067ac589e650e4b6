"""Opens ONNX Runtime sessions on the CPU, in the same way for all models. Does not use torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def cpu_session(path: Path, *, threads: int = 1) -> Any:  # noqa: ANN401 - an InferenceSession, which has no types
    """The model in that file. `threads` compute one call; thread-safe, and the interpreter is released meanwhile."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are shared with others
    # Processors without VNNI add 8-bit products in 16 bits, which overflows: the same model would judge otherwise
    # there. This makes them exact, and a little slower; on other processors it does nothing.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
