"""The embedder in this process: who goes first, what gives up, what is refused; on any processor, and without torch."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from prometheus_client import CollectorRegistry
from token_counts import counted_tokens

from memory.adapters.models.embedding_model import Card
from memory.adapters.models.onnx_embedder import QUEUED_TEXTS_MAX, EmbeddingLimits, OnnxEmbedder
from memory.adapters.models.packaged_encoder import cpu_session
from memory.adapters.models.recent_vectors import Prefixes
from memory.errors import Busy, Unavailable
from memory.model import Vector
from memory.runtime.metrics import Metrics

DIMENSION = 4


class SlowModel:
    """A vector follows from the length of its text; each waits for `may_go`, and is remembered."""

    card = Card("small", DIMENSION, 256, ("input_ids",))

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.may_go.set()
        self.texts: list[str] = []

    def vector(self, text: str) -> Vector:
        self.texts.append(text)
        assert self.may_go.wait(60)
        if text == "spoilt":
            raise RuntimeError("the runtime has had enough")
        vector = np.array([1.0, len(text), 0.5, 0.0], dtype=np.float32)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@asynccontextmanager
async def opened(model: SlowModel, metrics: Metrics | None = None, **limits: object) -> AsyncIterator[OnnxEmbedder]:
    wanted = EmbeddingLimits(**({"threads": 1, "urgent_seconds": 60.0} | limits))  # type: ignore[arg-type]
    used = metrics or Metrics(CollectorRegistry())
    async with OnnxEmbedder(model, limits=wanted, metrics=used) as embedder:
        model.texts.clear()
        yield embedder
        model.may_go.set()


async def until_busy(model: SlowModel) -> None:
    async with asyncio.timeout(30):
        while not model.texts:
            await asyncio.sleep(0.002)


async def test_a_question_goes_before_whatever_learning_still_wants() -> None:
    model = SlowModel()
    async with opened(model) as embedder, asyncio.TaskGroup() as group:
        model.may_go.clear()
        group.create_task(embedder.embed(["first", "second", "third"], is_urgent=False))
        await until_busy(model)
        group.create_task(embedder.embed(["question"], is_urgent=True))
        await asyncio.sleep(0)
        model.may_go.set()
    assert model.texts == ["first", "question", "second", "third"]


async def test_a_question_that_nobody_waits_for_any_more_is_not_worked_on() -> None:
    model = SlowModel()
    async with opened(model, urgent_seconds=0.05) as embedder, asyncio.TaskGroup() as group:
        model.may_go.clear()
        group.create_task(embedder.embed(["under way"], is_urgent=False))
        await until_busy(model)
        with pytest.raises(Unavailable, match=r"0\.05 s"):
            await embedder.embed(["late", "never"], is_urgent=True)
        model.may_go.set()
        await embedder.embed(["next"], is_urgent=False)
    assert model.texts == ["under way", "next"]


async def test_a_full_line_refuses_counts_it_and_leaves_the_other_open() -> None:
    model, metrics = SlowModel(), Metrics(CollectorRegistry())
    async with opened(model, metrics) as embedder, asyncio.TaskGroup() as group:
        model.may_go.clear()
        group.create_task(embedder.embed(["under way"], is_urgent=True))
        await until_busy(model)
        waiting = [f"w{i}" for i in range(QUEUED_TEXTS_MAX["request"])]
        group.create_task(embedder.embed(waiting, is_urgent=True))
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="too many"):
            await embedder.embed(["one more"], is_urgent=True)
        learning = group.create_task(embedder.embed(["learnt"], is_urgent=False))
        await asyncio.sleep(0)
        model.may_go.set()
        assert (await learning).shape == (1, DIMENSION)
    assert metrics.registry.get_sample_value("memproxy_embed_shed_total") == 1


async def test_several_threads_take_several_texts_at_a_time() -> None:
    model = SlowModel()
    async with opened(model, threads=3) as embedder, asyncio.TaskGroup() as group:
        model.may_go.clear()
        group.create_task(embedder.embed(["a", "b", "c", "d"], is_urgent=False))
        async with asyncio.timeout(30):
            while len(model.texts) < 3:
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)
        assert sorted(model.texts) == ["a", "b", "c"]
        model.may_go.set()


async def test_an_error_of_the_runtime_is_the_embedder_being_unavailable_for_this_text() -> None:
    async with opened(SlowModel()) as embedder:
        with pytest.raises(Unavailable, match="RuntimeError"):
            await embedder.embed(["spoilt"], is_urgent=True)
        assert (await embedder.embed(["sound"], is_urgent=True)).shape == (1, DIMENSION)


async def test_whoever_waits_when_it_is_closed_is_told() -> None:
    model, told = SlowModel(), asyncio.Event()

    async def wait(embedder: OnnxEmbedder) -> None:
        with pytest.raises(Unavailable, match="closed"):
            await embedder.embed(["under way", "behind"], is_urgent=False)
        told.set()

    async with asyncio.TaskGroup() as group, opened(model) as embedder:
        model.may_go.clear()
        group.create_task(wait(embedder))
        await until_busy(model)
    assert told.is_set()


async def test_recent_texts_are_not_embedded_again_and_old_ones_make_room() -> None:
    model = SlowModel()
    async with opened(model, cache_texts=2) as embedder:
        for text in ("a", "b", "a", "c", "a", "b"):
            await embedder.embed([text], is_urgent=False)
    assert model.texts == ["a", "b", "c", "b"]


async def test_questions_and_texts_get_the_words_that_the_model_wants() -> None:
    model = SlowModel()
    async with opened(model, prefixes=Prefixes("query: ", "passage: ")) as embedder:
        await embedder.embed(["cat"], is_urgent=True, as_query=True)
        await embedder.embed(["cat"], is_urgent=False)
    assert model.texts == ["query: cat", "passage: cat"]


@pytest.mark.full("starts a process that loads the models")
def test_no_running_part_imports_what_only_preparing_needs() -> None:
    """In a process of its own, since this one may have prepared models."""
    program = (
        "import asyncio, sys\n"
        "import extproc.server, memory.processes.entrypoints\n"
        "from memory.processes.composition import open_embedder\n"
        "from memory.processes.reader_parts import open_readers\n"
        "from memory.settings.loader import from_process\n"
        "from memory.runtime.metrics import Metrics\n"
        "from prometheus_client import CollectorRegistry\n"
        "async def main():\n"
        "    settings = from_process(None, {})\n"
        "    async with open_embedder(settings) as embedder, open_readers(settings, Metrics(CollectorRegistry())):\n"
        "        await embedder.embed(['a'], is_urgent=True)\n"
        "asyncio.run(main())\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split("\n")[-2] == "[]"


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


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("", 0), ("My cat is called Miso.", 7), ("unaffable", 3), ("我喜欢猫", 3), ("\ud83d", 1), ("\x00", 2)),
        pytest.param("word " * 5_000, 5_000, id="long"),
    ],
)
def test_words_are_cut_into_the_pieces_of_the_vocabulary_to_the_end_of_a_text(text: str, count: int) -> None:
    tokens = counted_tokens()
    assert tokens(text) == tokens(text) == count
