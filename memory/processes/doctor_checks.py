"""Checks of the installation: each part is tested once, and each finding comes with advice.

Tests what a part does at its start, with the same settings, including the creation of a missing Milvus collection;
nothing else is written. Contents of memories, turns and secret settings are never shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib.resources import as_file

from prometheus_client import CollectorRegistry

from memory.adapters.http_probe import date_of
from memory.adapters.milvus.connection import MilvusAddress, durability_of
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.models import embedding_model, reader_weights
from memory.adapters.models.prepared_models import is_complete
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.adapters.models.upstream_models import first_model
from memory.errors import BadInput, Unavailable
from memory.learn.reading.exam import StoredExam
from memory.model import VectorOrigin
from memory.processes import composition
from memory.processes.disk_findings import data_directory_finding
from memory.processes.findings import Finding, Level
from memory.processes.from_settings import PATIENT_SECONDS, milvus_address, vector_origin
from memory.processes.identity_findings import identity_finding
from memory.processes.kept_state import ExaminedState, RunningPart, introduced
from memory.processes.reader_parts import asks_model, examinee, open_model_reader
from memory.processes.state_parts import open_examined
from memory.runtime.metrics import Metrics
from memory.runtime.release import RUNNING, Release
from memory.settings import Settings

CHECK_SECONDS_MAX = 30.0
WAITING_SECONDS_LONG = 3_600.0
FAILURES_SHOWN_MAX = 5
MILVUS_STORAGE = (
    "Whether its rows survive a crash or a lost disk depends on its own log and object storage, which cannot be seen "
    "from here: back those up, or keep `memproxy export`"
)
PREPARE = "run `memproxy prepare`, or let the next start do it (30 s)"
SHOWN_MAX = 10  # parts of another release
RESTART = (
    "run `memproxy restart`, or restart the containers: until then they go on with what was installed at their start"
)
DIFFERENCE_SECONDS_MAX = 60.0  # synchronised clocks differ by less than one
ANSWER_SECONDS_MAX = 5.0


async def look(settings: Settings) -> list[Finding]:
    """All checks, in the order in which a start depends on them. Never raises."""
    async with AsyncExitStack() as stack:
        opened: list[ExaminedState] = []

        async def turn_log() -> Finding:
            opened.append(await stack.enter_async_context(open_examined(settings, composition.SYSTEM_CLOCK)))
            return Finding("turn log", Level.OK, opened[0].where)

        found = [
            await _checked("identity", lambda: identity_finding(settings)),
            await _checked("embedding model", lambda: _embedding(settings)),
            await _checked("trained reader", lambda: _trained_reader(settings)),
            await _checked("data directory", lambda: asyncio.to_thread(data_directory_finding, settings)),
        ]
        if settings.database_url or settings.turn_log_path.parent.is_dir():
            found.append(await _checked("turn log", turn_log))
        state = opened[0] if opened else None
        found.append(await _checked("version", lambda: version_finding(state, RUNNING)))
        if state is not None:
            found.append(await _checked("queue", lambda: _queue(state)))
            found.append(await _checked("opt-outs", lambda: _opt_outs(state)))
        found.append(await _checked("milvus", lambda: _milvus(settings)))
        found.append(await _checked("upstream", lambda: _upstream(settings)))
        now = composition.SYSTEM_CLOCK()
        found.append(await _checked("clock", lambda: clock_finding(settings, state, now=now)))
        found.append(await _checked("reader", lambda: _reader(settings, state)))
        return found


async def _checked(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    try:
        async with asyncio.timeout(CHECK_SECONDS_MAX):
            return await check()
    except BadInput as error:
        return Finding(name, Level.FAIL, str(error), "correct what it names, then start again")
    except Unavailable as error:
        return Finding(name, Level.FAIL, str(error), f"check whether {error.part} runs and can be reached from here")
    except TimeoutError:
        return Finding(name, Level.FAIL, f"no answer within {CHECK_SECONDS_MAX:.0f} s", "check what it waits for")
    except OSError as error:
        return Finding(name, Level.FAIL, str(error), "check who owns the file, and the disk's health")


async def _embedding(settings: Settings) -> Finding:
    embedding = settings.memory.embedding
    where = embedding.endpoint
    if not where:
        folder = embedding_model.folder_of(embedding.model, settings.models_path)
        if not is_complete(folder):
            return Finding("embedding model", Level.WARN, f"{embedding.model} is not converted yet", PREPARE)
        where = folder.name
    async with composition.open_embedder(settings) as embedder:
        vectors = await embedder.embed(["Is everything there?"], is_urgent=False)
    return Finding("embedding model", Level.OK, f"{embedding.model}, {vectors.shape[1]} dimensions ({where})")


async def _trained_reader(settings: Settings) -> Finding:
    if settings.memory.learn.reader == "off":
        return Finding("trained reader", Level.OK, "not wanted: memory.learn.reader is off")
    if not reader_weights.shipped().is_file():
        return Finding("trained reader", Level.FAIL, "the package holds no weights", reader_weights.EXPECTED)
    with as_file(reader_weights.shipped()) as weights:
        version = reader_weights.version_of(weights)
    folder = reader_weights.folder_of(settings.models_path, version)
    if not is_complete(folder):
        return Finding("trained reader", Level.WARN, f"version {version} is not converted yet", PREPARE)
    await asyncio.to_thread(OnnxStatementEncoder, folder)
    return Finding("trained reader", Level.OK, f"version {version}")


async def _queue(state: ExaminedState) -> Finding:
    depth = await state.queue.depth(now=composition.SYSTEM_CLOCK())
    waiting = depth.due + depth.leased + depth.retrying
    says = f"{waiting} turns wait to be learnt, the oldest for {depth.oldest_seconds:.0f} s; {depth.dead} are given up"
    if depth.dead:
        return Finding("queue", Level.WARN, says, "`memproxy dlq list` says why, `memproxy dlq replay` tries again")
    if waiting and depth.oldest_seconds > WAITING_SECONDS_LONG:
        return Finding("queue", Level.WARN, says, "check whether a worker runs, and its log")
    return Finding("queue", Level.OK, says)


async def _opt_outs(state: ExaminedState) -> Finding:
    """Of no user is known here who it is: they are stored as digests."""
    return Finding("opt-outs", Level.OK, f"{await state.opt_outs.count()} users have opted out")


async def _milvus(settings: Settings) -> Finding:
    milvus, uri = settings.memory.milvus, settings.store_uri
    if not uri:
        try:
            uri = settings.milvus_uri_file.read_text(encoding="ascii").strip()
        except OSError:
            advice = f"start `memproxy up` on {settings.data_dir}, or set milvus_uri"
            return Finding("milvus", Level.WARN, "no Milvus is named, and no `memproxy up` runs here", advice)
    origin = _origin(settings)
    address = replace(milvus_address(settings, origin), uri=uri)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
        await store.prepare()
    held = f"{milvus.dimension} dimensions" if origin is None else f"vectors of {origin}"
    says = f"{uri}, collection {milvus.collection} of {held}"
    if rows := await _rows_past_their_index(address):
        advice = "stop memproxy and run `memproxy migrate`, which chooses the index for this number"
        return Finding("milvus", Level.WARN, f"{says}; its index is made for fewer than {rows} rows", advice)
    kept = await durability_of(address, metrics=Metrics(CollectorRegistry()))
    if kept.keeps_seconds:
        says = f"{says}; the server deletes each memory {kept.keeps_seconds} s after its last change"
        advice = "drop the property collection.ttl.seconds of the collection: memproxy does not set it"
        return Finding("milvus", Level.WARN, says, advice)
    return Finding("milvus", Level.OK, f"{says}. {MILVUS_STORAGE}" if kept.is_server else says)


async def _rows_past_their_index(address: MilvusAddress) -> int:
    """The number of rows if their index is made for fewer; 0 if it serves them."""
    wanted = address.origin or VectorOrigin("", address.dimension)
    async with MilvusReembedding(address, wanted=wanted, metrics=Metrics(CollectorRegistry())) as run:
        status = await run.status_without_copies()
    return status.memories if status.outdated else 0


def _origin(settings: Settings) -> VectorOrigin | None:
    """The origin of our vectors; None if unknown until the model is converted."""
    embedding = settings.memory.embedding
    if embedding.endpoint:
        return vector_origin(settings)
    folder = embedding_model.folder_of(embedding.model, settings.models_path)
    return vector_origin(settings, embedding_model.card_of(folder)) if is_complete(folder) else None


async def _upstream(settings: Settings) -> Finding:
    if not settings.upstream:
        return Finding("upstream", Level.OK, "none is named: `memproxy up` starts a small local model")
    try:
        model = await first_model(settings.upstream, seconds=PATIENT_SECONDS)
    except Unavailable as error:
        advice = "start it, or correct `upstream`; chats fail until then"
        return Finding("upstream", Level.WARN, f"{settings.upstream} lists no models ({error})", advice)
    return Finding("upstream", Level.OK, f"{settings.upstream} serves {model}")


async def _reader(settings: Settings, state: ExaminedState | None) -> Finding:
    """The reader in use, and the exam result of the chat model."""
    wanted = settings.memory.learn.reader
    if not asks_model(settings):
        says = {"off": "nothing is learnt: memory.learn.reader is off"}.get(wanted, "the trained reader reads")
        return Finding("reader", Level.OK, says)
    try:
        model, endpoint = await examinee(settings)
    except Unavailable as error:
        return Finding("reader", Level.WARN, f"the trained reader reads: {error}", "see `upstream`")
    name = model.llm_model_name
    if wanted == "model":
        return Finding("reader", Level.OK, f"{name} reads, without an exam: memory.learn.reader is model")
    metrics = Metrics(CollectorRegistry())
    async with open_model_reader(settings, model, metrics, endpoint=endpoint) as reader:
        version = reader.prompt_version
    known = None
    if state is not None:
        known = await StoredExam(state.exams, model=name, server=endpoint).known(version)
    if known is None:
        says = f"the trained reader reads: {name} has not sat the exam, or not lately"
        return Finding("reader", Level.WARN, says, "the worker has it sit when it starts; its log says how that went")
    if known.passed:
        return Finding("reader", Level.OK, f"{name} reads: it passed the exam with {known.score:.2f}")
    failed = ", ".join(known.failures[:FAILURES_SHOWN_MAX])
    advice = "name a more capable model for memory_extraction in external_models, or leave it at that"
    says = f"the trained reader reads: {name} failed the exam with {known.score:.2f} ({failed})"
    return Finding("reader", Level.WARN, says, advice)


async def version_finding(state: ExaminedState | None, installed: Release) -> Finding:
    """`state`: what the parts share, if it can be read. `installed`: what a start would run now."""
    if state is None:
        return Finding("version", Level.OK, f"{installed} is installed; no part can be asked")
    parts = introduced(await state.introductions())
    stale = [one for one in parts if one is None or one.release.differs_from(installed)]
    if stale:
        named = [f"{one} runs {one.release}" for one in stale if one is not None]
        if silent := stale.count(None):
            named.append(f"{silent} of a release that does not state its version")
        more = f" and {len(named) - SHOWN_MAX} more" if len(named) > SHOWN_MAX else ""
        return Finding(
            "version", Level.WARN, f"{installed} is installed; {', '.join(named[:SHOWN_MAX])}{more}", RESTART
        )
    return Finding("version", Level.OK, f"{installed}, run by {_counted(parts) or 'no part now'}")


def _counted(parts: list[RunningPart | None]) -> str:
    kinds = Counter(one.part for one in parts if one is not None)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


async def clock_finding(settings: Settings, state: ExaminedState | None, *, now: float) -> Finding:
    """`state`: what is kept, if it can be read."""
    newest = None if state is None or state.newest_turn_at is None else await state.newest_turn_at()
    if newest is not None and newest - now > DIFFERENCE_SECONDS_MAX:
        says = (
            f"the newest turn was recorded {newest - now:.0f} s after what this machine calls now: its clock went back"
        )
        advice = (
            "correct the clock and keep it synchronised: until then what is said now counts as older than that turn"
        )
        return Finding("clock", Level.WARN, says, advice)
    agreeing: list[str] = []
    for name, there in await _others(settings, state):
        difference = now - there
        if abs(difference) > DIFFERENCE_SECONDS_MAX:
            says = f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} that of {name}"
            advice = "synchronise both clocks: `today` and `last week` in memories are reckoned with this one"
            return Finding("clock", Level.WARN, says, advice)
        agreeing.append(name)
    if not agreeing:
        return Finding("clock", Level.OK, "not behind the newest turn; no upstream says what time it is")
    return Finding("clock", Level.OK, f"agrees with {' and '.join(agreeing)}")


async def _others(settings: Settings, state: ExaminedState | None) -> list[tuple[str, float]]:
    """What other machines call now, with their names; without those that are away, which other checks report."""
    others: list[tuple[str, float]] = []
    if state is not None and state.server_time is not None:
        others.append((state.where, await state.server_time()))
    if settings.upstream:
        try:
            there = await date_of(settings.upstream, seconds=ANSWER_SECONDS_MAX)
        except Unavailable:
            return others
        if there is not None:
            others.append((settings.upstream, there))
    return others
