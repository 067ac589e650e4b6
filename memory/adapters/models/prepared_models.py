"""Creates folders of prepared models once, atomically, in a process of their own.

Preparing takes torch, seconds and hundreds of megabytes, which running parts should not need; so it happens in a
process that ends afterwards. A list of the files is written last: a folder without it, or with missing or truncated
files, is created again.

A torch model is exported to ONNX with weights and activations in 8 bits.

Activations have one scale for a whole text, which a single large one coarsens for all others: modules named `apart`
keep single precision, and `packaged_encoder.with_outliers_apart` puts such activations there.
"""

from __future__ import annotations

import logging
import multiprocessing
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from memory.errors import BadSetting
from memory.typed import from_json

OPSET = 17
APART = "/apart/"  # in the names of nodes: of a module that keeps single precision


def export_in_8_bits(
    model: Any,  # noqa: ANN401 - a torch Module
    example: Mapping[str, Any],
    file: Path,
    *,
    output: str,
    axes: dict[str, dict[int, str]],
) -> None:
    """Write the model to `file` with 8-bit weights per channel: with one scale per tensor the error is four times as
    large. Weights keep to 7 of the bits: no processor then overflows while it adds their products with activations.

    `example`: tensors by the names of the inputs, in order.
    """
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole = file.with_name("whole.onnx")
    # The quantiser logs advice to the root logger; this process does nothing else.
    logging.getLogger().setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's tracing warnings
        torch.onnx.export(
            model,
            tuple(example.values()),
            str(whole),
            input_names=list(example),
            output_names=[output],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
        apart = [node.name for node in onnx.load(str(whole)).graph.node if APART in node.name]
        quantize_dynamic(
            whole, file, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8, nodes_to_exclude=apart
        )
    whole.unlink()


COMPLETE = "complete.json"  # names and sizes in bytes of the files

log = structlog.get_logger(__name__)


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder; if it is missing or damaged, `make` fills a temporary one first. An interrupted start leaves nothing.
    Raises the errors of `make`, and `BadSetting` if the folder cannot be created.
    """
    if is_complete(folder):
        return folder
    if folder.is_dir():
        log.warning("a prepared model is damaged or of an older release: it is prepared again", model=folder.name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise BadSetting(
            f"models_dir: {folder.name} must be made ready in {folder.parent}, which cannot be written "
            f"({error.strerror}): run `memproxy prepare` as a user who may, or name another folder"
        ) from None
    try:
        _make_apart(draft / folder.name, make)
        _put(draft / folder.name, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def is_complete(folder: Path) -> bool:
    """Whether all files exist in full length."""
    try:
        sizes = from_json((folder / COMPLETE).read_bytes(), dict[str, int])
        return bool(sizes) and all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _make_apart(made: Path, make: Callable[[Path], None]) -> None:
    made.mkdir()
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
            apart.submit(partial(make, made)).result()
    except BrokenProcessPool:
        raise BadSetting(
            f"{made.name}: the process that makes it ready was killed; it takes about 1 GB of memory. Run `memproxy "
            "prepare` where there is more, and bring its folder along"
        ) from None
    sizes = {file.name: file.stat().st_size for file in sorted(made.iterdir())}
    (made / COMPLETE).write_bytes(msgspec.json.encode(sizes))


def _put(made: Path, folder: Path) -> None:
    """Replace what is there; the result of a faster process is kept."""
    if folder.is_dir() and not is_complete(folder):
        folder.rename(made.with_name("damaged"))
    try:
        made.rename(folder)
    except OSError:
        if not is_complete(folder):
            raise
