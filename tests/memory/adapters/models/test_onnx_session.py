"""Sessions compute the same on every processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from memory.adapters.models.onnx_session import cpu_session

INPUTS, OUTPUTS = 64, 16


def product_in_8_bits(file: Path, weights: np.ndarray) -> None:
    """A model of one layer, as the quantiser writes it: unsigned activations times signed weights."""
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["activations", "weights", "from", "to"], ["sums"])],
        "product",
        [helper.make_tensor_value_info("activations", TensorProto.UINT8, ["rows", INPUTS])],
        [helper.make_tensor_value_info("sums", TensorProto.INT32, ["rows", OUTPUTS])],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array(0, dtype=np.uint8), "from"),
            numpy_helper.from_array(np.array(0, dtype=np.int8), "to"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))


def test_the_largest_products_do_not_overflow_on_any_processor(tmp_path: Path) -> None:
    """Processors without VNNI add two such products in 16 bits, unless told otherwise: there this can fail."""
    weights = np.full((INPUTS, OUTPUTS), 127, dtype=np.int8)
    product_in_8_bits(tmp_path / "product.onnx", weights)
    activations = np.full((3, INPUTS), 255, dtype=np.uint8)
    (sums,) = cpu_session(tmp_path / "product.onnx").run(None, {"activations": activations})
    assert (sums == 255 * 127 * INPUTS).all()
