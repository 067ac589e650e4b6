"""Creates folders of prepared models once, atomically, in a process of their own.

Preparing takes torch, seconds and hundreds of megabytes, which running parts should not need; so it happens in a
process that ends afterwards. A list of the files is written last: a folder without it, or with missing or truncated
files, is created again.

A torch model is exported to ONNX with weights and activations in 8 bits.

Activations have one scale for a whole text, which a few large ones coarsen for all others: those inside a feed-forward
layer, mostly. Matrices that multiply these can be kept in blocks of 4 bits, with a scale for each block of activations
too. Of the packaged model they are stored in such blocks, so nothing is lost; on 402 questions its vectors then rank
like those in single precision, and the call takes a tenth longer.
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
import numpy as np
import numpy.typing as npt
import structlog

from memory.errors import BadSetting

OPSET = 17
BLOCK, ZERO = 32, 8  # weights that share a scale; of 4 bits, the value that means 0
RUNTIME = "com.microsoft"  # ONNX Runtime's own operators
ACTIVATIONS_IN_8_BITS = 4  # as the operator numbers it


def export_in_8_bits(
    model: Any,  # noqa: ANN401 - a torch Module
    example: Mapping[str, Any],
    file: Path,
    *,
    output: str,
    axes: dict[str, dict[int, str]],
    in_blocks: Callable[[str], bool] = lambda _: False,
) -> None:
    """Write the model to `file` with 8-bit weights per channel: with one scale per tensor the error is four times as
    large. Weights keep to 7 of the bits: no processor then overflows while it adds their products with activations.

    `example`: tensors by the names of the inputs, in order. `in_blocks`: whether
    the product of that name has weights in blocks of 4 bits.
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
        exported = onnx.load(str(whole))
        blocks = [node.name for node in exported.graph.node if node.op_type == "MatMul" and in_blocks(node.name)]
        quantize_dynamic(
            whole, file, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8, nodes_to_exclude=blocks
        )
    whole.unlink()
    if blocks:
        quantized = onnx.load(str(file))
        _put_blocks(quantized, frozenset(blocks))
        onnx.save(quantized, str(file))


def _put_blocks(model: Any, names: frozenset[str]) -> None:  # noqa: ANN401 - an onnx ModelProto
    """Replace these products of activations and a matrix by those that take the matrix in blocks."""
    from onnx import helper, numpy_helper

    graph = model.graph
    matrices = {one.name: one for one in graph.initializer}
    nodes, replaced = [], set()
    for node in graph.node:
        if node.name not in names:
            nodes.append(node)
            continue
        weights = numpy_helper.to_array(matrices[node.input[1]])
        packed, scales = packed_in_blocks(weights.T)
        held = [f"{node.name}/blocks", f"{node.name}/scales"]
        graph.initializer.append(numpy_helper.from_array(packed, held[0]))
        graph.initializer.append(numpy_helper.from_array(scales, held[1]))
        nodes.append(
            helper.make_node(
                "MatMulNBits",
                [node.input[0], *held],
                list(node.output),
                name=node.name,
                domain=RUNTIME,
                K=weights.shape[0],
                N=weights.shape[1],
                bits=4,
                block_size=BLOCK,
                accuracy_level=ACTIVATIONS_IN_8_BITS,
            )
        )
        replaced.add(node.input[1])
    kept = [one for one in graph.initializer if one.name not in replaced]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    if all(one.domain != RUNTIME for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid(RUNTIME, 1))


def packed_in_blocks(weights: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Rows in blocks of 4 bits, two to a byte, and a scale for each block. Exact for weights that come from such
    blocks, whose largest is always -8 scales.

    Shapes `(rows, blocks, BLOCK / 2)` and `(rows * blocks,)`.
    """
    blocks = weights.reshape(len(weights), -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1, keepdims=True), axis=-1)
    scales = np.where(largest == 0, 1.0, -largest / ZERO).astype(np.float32)
    steps = np.clip(np.rint(blocks / scales) + ZERO, 0, 2 * ZERO - 1).astype(np.uint8)
    return steps[..., ::2] | (steps[..., 1::2] << 4), scales.ravel()


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
        sizes = msgspec.json.decode((folder / COMPLETE).read_bytes(), type=dict[str, int])
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
