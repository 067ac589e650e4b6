"""The embedding process: one model for filter, worker and API, behind OpenAI's `/v1/embeddings` on a Unix socket.

Texts of all requests meet in two queues. Whatever waits is embedded as one batch; a chat's question always goes before
what learning wants, and a batch for learning is kept so short that a question waits little behind it. It must never let
a queue grow without end, answer before the model is warm, or log a text.
"""

from __future__ import annotations

import asyncio
import base64
import math
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
import numpy as np
import uvicorn

from memory.adapters import embedding_model
from memory.adapters.embeddings import LANE_HEADER, PATIENCE_HEADER
from memory.config import Settings
from memory.errors import BadInput, BadSetting, Unavailable
from memory.metrics import Metrics
from memory.model import Vector

BODY_BYTES_MAX = 16 << 20  # 2,048 memories of the largest kind
TEXTS_MAX = 2_048  # of one request, as OpenAI has it
TEXT_CHARACTERS_MAX = 32_768  # the model reads 256 tokens; what comes so late is past them
BATCH_TEXTS_MAX = 32
QUESTION_BATCH_SECONDS_MAX = 0.015  # a new question waits for the batch under way, and then for its own
LEARN_BATCH_CHARACTERS_MAX = 400  # four sentences, about 15 ms: what a question may have to wait for
QUEUED_TEXTS_MAX = {"request": 256, "learn": 4_096}  # seconds of work on two cores; beyond it, waiting helps nobody
QUESTION_SECONDS_MAX = 0.5  # whoever asked a question that long ago has gone on without the answer, if not sooner
SMOOTHING = 0.2  # weight of the newest batch
OUTLIER = 2.0  # a batch that takes longer than so many times the usual counts as that: it is no trend yet
DRAIN_SECONDS = 2

Lane: TypeAlias = Literal["request", "learn"]
LANES: tuple[Lane, Lane] = ("request", "learn")
AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]


class TextModel(Protocol):
    """What turns text into unit vectors, in one thread, as long as it takes."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> Vector: ...

    def count_tokens(self, texts: Sequence[str]) -> int: ...


async def serve(settings: Settings, *, metrics: Metrics, until: asyncio.Event) -> None:
    """Load the model that the settings name, then serve it until told to stop. Raises `BadSetting`."""
    embedding = settings.memory.embedding
    model = await asyncio.to_thread(
        embedding_model.load,
        embedding.model,
        exports_dir=settings.models_path,
        threads=embedding.threads,
    )
    if model.dimension != embedding.dimension:
        raise BadSetting(
            f"memory.embedding.dimension is {embedding.dimension}; {embedding.model} makes vectors of {model.dimension}"
        )
    await serve_model(model, socket_path=Path(settings.embedder_socket), metrics=metrics, until=until)


async def serve_model(model: TextModel, *, socket_path: Path, metrics: Metrics, until: asyncio.Event) -> None:
    """Serve a loaded model on a Unix socket, which appears when all is ready and is gone when this returns."""
    batches = Batches(model, metrics=metrics)
    config = uvicorn.Config(
        EmbeddingsApp(batches),
        loop="none",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = _Server(config)
    with _listening(socket_path) as listener:
        async with asyncio.TaskGroup() as group:
            batching = group.create_task(batches.run())
            serving = group.create_task(server.serve(sockets=[listener]))
            await until.wait()
            server.should_exit = True
            await serving
            batching.cancel()


@dataclass(slots=True)
class Job:
    """The texts of one request, on their way to vectors."""

    texts: list[str]
    vectors: Vector
    missing: int
    given_up_at: float  # in the loop's time: nobody waits for it any more
    done: asyncio.Future[Vector]

    @property
    def is_given_up(self) -> bool:
        return self.done.done()


class Batches:
    """Two queues before one model. `embed` waits for its vectors; `run` makes them, batch by batch."""

    def __init__(self, model: TextModel, *, metrics: Metrics) -> None:
        self.model = model
        self._metrics = metrics
        self._queues: dict[Lane, deque[tuple[Job, int]]] = {lane: deque() for lane in LANES}
        self._waiting = asyncio.Event()
        self._seconds_each = 0.0  # of a question, in batches of late

    async def embed(self, texts: list[str], *, lane: Lane, patience: float = math.inf) -> Vector:
        """Vectors in the order of the texts. Raises `Unavailable` when the lane is full or the wait was too long.

        `patience` in seconds: what waits longer is not embedded at all, so that the time goes to those who still wait.
        """
        queue = self._queues[lane]
        if len(queue) + len(texts) > QUEUED_TEXTS_MAX[lane]:
            self._metrics.embed_shed.inc(len(texts))
            raise Unavailable("embedder", "too many texts are waiting")
        loop = asyncio.get_running_loop()
        vectors = np.empty((len(texts), self.model.dimension), dtype=np.float32)
        job = Job(texts, vectors, len(texts), loop.time() + patience, loop.create_future())
        queue.extend((job, index) for index in range(len(texts)))
        self._waiting.set()
        return await job.done

    async def run(self) -> None:
        """Until cancelled. An error of the model ends the process: its supervisor starts a sound one."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="model") as thread:
            while True:
                await self._waiting.wait()
                lane = next((lane for lane in LANES if self._queues[lane]), None)
                if lane is None:
                    self._waiting.clear()
                    continue
                batch = self._next_batch(lane, now=loop.time())
                if not batch:
                    continue
                texts = [job.texts[index] for job, index in batch]
                self._metrics.embed_batch_texts.observe(len(texts))
                began_at = loop.time()
                with self._metrics.embed_seconds.labels(lane).time():
                    vectors = await loop.run_in_executor(thread, self.model.encode, texts)
                if lane == "request":
                    self._took(loop.time() - began_at, texts=len(texts))
                self._hand_out(batch, vectors)

    def _took(self, seconds: float, *, texts: int) -> None:
        each, known = seconds / texts, self._seconds_each
        self._seconds_each += SMOOTHING * (min(each, OUTLIER * known) - known) if known else each

    def _texts_max(self, lane: Lane) -> int:
        """On few cores a batch of many questions is hardly quicker than one after the other, and all wait for it."""
        if lane == "learn" or not self._seconds_each:
            return BATCH_TEXTS_MAX
        return min(BATCH_TEXTS_MAX, max(1, int(QUESTION_BATCH_SECONDS_MAX / self._seconds_each)))

    def _next_batch(self, lane: Lane, *, now: float) -> list[tuple[Job, int]]:
        """What goes to the model next: the longest waiting texts of the lane, as many as a batch may hold."""
        queue = self._queues[lane]
        batch: list[tuple[Job, int]] = []
        characters = 0
        texts_max = self._texts_max(lane)
        while queue and len(batch) < texts_max:
            job, index = queue[0]
            if now > job.given_up_at and not job.is_given_up:
                job.done.set_exception(Unavailable("embedder", "it took too long"))
            characters += min(len(job.texts[index]), LEARN_BATCH_CHARACTERS_MAX)
            if lane == "learn" and batch and characters > LEARN_BATCH_CHARACTERS_MAX:
                break
            queue.popleft()
            if not job.is_given_up:
                batch.append((job, index))
        return batch

    @staticmethod
    def _hand_out(batch: list[tuple[Job, int]], vectors: Vector) -> None:
        for (job, index), vector in zip(batch, vectors, strict=True):
            job.vectors[index] = vector
            job.missing -= 1
            if not job.missing and not job.is_given_up:
                job.done.set_result(job.vectors)


class _Asked(msgspec.Struct):
    input: str | list[str]
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None

    @property
    def texts(self) -> list[str]:
        given = [self.input] if isinstance(self.input, str) else self.input
        return [text[:TEXT_CHARACTERS_MAX] for text in given]


class EmbeddingsApp:
    """The HTTP side, as a bare ASGI application: a framework would cost more than the socket."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        match scope["method"], scope["path"]:
            case "POST", "/v1/embeddings":
                status, answer = await self._embeddings(scope, receive)
            case "GET", "/health":
                status, answer = 200, {"status": "ok", "model": self._batches.model.name}
            case _, "/v1/embeddings" | "/health":
                status, answer = _error(405, "this path takes another method")
            case _:
                status, answer = _error(404, "there are /v1/embeddings and /health")
        await _answer(send, status, answer)

    async def _embeddings(self, scope: MutableMapping[str, Any], receive: Receive) -> tuple[int, dict[str, Any]]:
        try:
            asked = self._read(await _body(receive))
            texts = asked.texts
            vectors = await self._batches.embed(texts, lane=_lane(scope), patience=_patience(scope))
        except BadInput as error:
            return _error(413 if error.code == "too_large" else 400, str(error))
        except Unavailable as error:
            return _error(503, str(error))
        is_ours = bool(_header(scope, LANE_HEADER))  # our own processes never look at it, and counting takes its time
        tokens = 0 if is_ours else await asyncio.to_thread(self._batches.model.count_tokens, texts)
        data = [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, asked.encoding_format)}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return 200, {"object": "list", "data": data, "model": asked.model or self._batches.model.name, "usage": usage}

    def _read(self, body: bytes) -> _Asked:
        try:
            asked = msgspec.json.decode(body, type=_Asked)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"expected a JSON object with input, a text or a list of texts: {error}") from None
        if not asked.texts or not all(asked.texts):
            raise BadInput("input must hold at least one text, and no empty one")
        if len(asked.texts) > TEXTS_MAX:
            raise BadInput(f"input holds {len(asked.texts)} texts; at most {TEXTS_MAX} in one request")
        if asked.dimensions not in (None, self._batches.model.dimension):
            raise BadInput(f"dimensions must be {self._batches.model.dimension}, or left out")
        return asked


def _lane(scope: MutableMapping[str, Any]) -> Lane:
    """As the header says; whoever says nothing is asked to wait behind the questions."""
    return "request" if _header(scope, LANE_HEADER) == "request" else "learn"


def _patience(scope: MutableMapping[str, Any]) -> float:
    """Seconds that the caller waits, as the header says in milliseconds; a question is never kept for long."""
    given = _header(scope, PATIENCE_HEADER)
    seconds = int(given) / 1000 if given.isascii() and given.isdecimal() else math.inf
    return min(seconds, QUESTION_SECONDS_MAX) if _lane(scope) == "request" else seconds


def _header(scope: MutableMapping[str, Any], name: str) -> str:
    """The first of that name, "" without one."""
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadInput("the body ended early")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES_MAX:
            raise BadInput(f"the body is larger than {BODY_BYTES_MAX} bytes", code="too_large")
        is_whole = not message.get("more_body", False)
    return b"".join(parts)


def _encoded(vector: Vector, encoding: Literal["float", "base64"]) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in vector]


def _error(status: int, message: str) -> tuple[int, dict[str, Any]]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return status, {"error": {"message": message, "type": kind, "code": HTTPStatus(status).phrase, "param": None}}


async def _answer(send: Send, status: int, answer: dict[str, Any]) -> None:
    body = msgspec.json.encode(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: when to stop is the caller's to say."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A socket that only this user may open, in place of whatever an earlier process left there."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(socket.SOMAXCONN)
        listener.setblocking(False)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)
