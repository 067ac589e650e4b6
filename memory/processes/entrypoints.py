"""The processes of memory: each opens its parts, works until told to stop, and closes them.

No adapters are built here, and no decisions are made.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from memory.api.callers import Callers
from memory.api.mcp_on_demand import McpOnDemand
from memory.api.rest import create_app
from memory.errors import Unavailable
from memory.learn.readers import Readers
from memory.learn.retention import DAY
from memory.learn.upkeep import Upkeep, UpkeepLoop
from memory.model import Candidate, Memory, Query, Question, RequestOptions, Scope
from memory.ports import ChatStateQuery, MemoryFilter
from memory.processes.background_parts import open_upkeep, summarizer_of
from memory.processes.composition import SYSTEM_CLOCK, Parts, open_parts
from memory.processes.deployment_parts import SeenParts
from memory.processes.erasure_parts import open_file_rewriter
from memory.processes.from_settings import caller_rules, recording
from memory.processes.reader_parts import examining, open_readers
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.recall.ranking.ranking import rank_found
from memory.runtime.gc_freeze import freeze_live_objects
from memory.runtime.offload import switch_often
from memory.runtime.task_groups import pause_before, started_again, unwrapped
from memory.service.summary_exclusions import WithdrawnSummaries
from memory.service.user_erasures import FileRewriter
from memory.sessions.record_expiry import delete_expired
from memory.settings import Settings

if TYPE_CHECKING:
    from memory.api.mcp import MemoryMcp

API_DRAIN_SECONDS = 5
API_CLOSING_SECONDS = 2.0  # for connections that were open when it was told to stop; Envoy's carry one call and end
API_CLOSING_POLL_SECONDS = 0.05
WARM_UP_USER = "memproxy warm-up"  # has no memories
WARM_UP_QUESTION = "Is everything there?"
WARM_UP_PAUSE_SECONDS = 0.2
STORE_PATIENCE_SECONDS = 5.0  # a process that starts during an outage of the store serves without it after this
DERIVATION_PAUSE_SECONDS = 30.0
SUMMARIES_SECONDS, PROFILES_SECONDS, EXPIRY_SECONDS = 1.0, 0.25, 600.0  # between two looks for what is to be done


async def run_worker(settings: Settings, until: asyncio.Event) -> None:
    async with open_parts(settings, traced_as="worker") as parts, open_readers(settings, parts.metrics) as readers:
        await warming_up(parts, _work(parts, readers, until))


async def _work(parts: Parts, readers: Readers, until: asyncio.Event) -> None:
    async with open_upkeep(parts, reader=readers.ready) as upkeep, open_file_rewriter(parts) as rewriter:
        # An interrupted round of these leaves nothing half done, and is continued later.
        background = [
            *_scheduled(parts, upkeep, until),
            *_derivations(parts, readers, rewriter, until),
            examining(parts.settings, readers, parts.state.exams, parts.metrics),
        ]
        await run_alongside(background, parts.worker(readers).run(until))


def _scheduled(parts: Parts, upkeep: Upkeep, until: asyncio.Event) -> Iterator[Coroutine[None, None, None]]:
    every, keep_days = parts.settings.memory.life.every_hours * 3600, parts.settings.memory.turn_log.keep_days
    if every:
        yield UpkeepLoop(
            upkeep, upkeep_schedule=parts.state.upkeep_schedule, clock=SYSTEM_CLOCK, metrics=parts.metrics, every=every
        ).run(until)
    if keep_days:
        record = parts.state.turn_log.messages
        expire = partial(delete_expired, record, clock=SYSTEM_CLOCK, keep_seconds=keep_days * DAY)
        yield _every(EXPIRY_SECONDS, expire, until)


def _derivations(
    parts: Parts, readers: Readers, rewriter: FileRewriter, until: asyncio.Event
) -> Iterator[Coroutine[None, None, None]]:
    """What is made of memories and sessions besides learning, which goes on whatever happens to these."""
    settings = parts.settings.memory
    withdrawn = WithdrawnSummaries(summaries=parts.state.summaries, notes=parts.stores.notes, clock=SYSTEM_CLOCK)
    running: dict[str, Callable[[asyncio.Event], Coroutine[None, None, None]]] = {
        "rewriting": rewriter.run,
        "withdrawn summaries": partial(_every, SUMMARIES_SECONDS, withdrawn.drop),
    }
    if settings.profile.enabled:
        running["profiles"] = partial(_every, PROFILES_SECONDS, parts.profile_refresher().refresh)
    if settings.has_summaries:
        running["summaries"] = partial(_every, SUMMARIES_SECONDS, summarizer_of(parts, readers).work)
    for name, run in running.items():
        yield started_again(partial(run, until), name=name, pause=DERIVATION_PAUSE_SECONDS)


async def _every(seconds: float, work: Callable[[], Awaitable[object]], until: asyncio.Event) -> None:
    while not until.is_set():
        await work()
        await pause_before(until, seconds)


async def run_api(settings: Settings, until: asyncio.Event) -> None:
    """Serve REST and MCP until told to stop."""
    async with open_parts(settings, embeds_rarely=True, traced_as="api") as parts:
        seen = SeenParts(settings, parts.state.introductions)
        library, rules = parts.library(seen), caller_rules(settings)
        callers = Callers(
            identity_mode=settings.identity, edge_secret=settings.edge_secret, metrics=parts.metrics, rules=rules
        )

        def load_mcp() -> MemoryMcp:
            from memory.api.mcp import MemoryMcp

            return MemoryMcp(library, callers, parts.metrics)

        mcp = McpOnDemand(load_mcp)
        app = create_app(library, callers, telemetry=parts.telemetry, routes=mcp.routes)
        config = uvicorn.Config(
            app,
            host=settings.api_host,
            port=settings.api_port,
            loop="none",
            lifespan="off",
            ws="none",  # by default it would load whichever library is installed
            access_log=False,  # its lines contain query strings
            log_config=None,
            timeout_graceful_shutdown=API_DRAIN_SECONDS,
        )
        async with mcp.running():
            await warming_up(parts, _serve_http(uvicorn.Server(config), until), WarmUp(searches=False))


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a process prepares in the background before it counts as working.

    `decides`: it decides whether to search, so the classifier of that is trained first. `searches`: not one that loads
    its embedding model on demand. `template_compatibility`: it places notes, so the upstream's models are probed.
    `ready` is set once recall works, as well as it can while the store is down: then it answers from snapshots.
    """

    decides: bool = False
    searches: bool = True
    template_compatibility: TemplateCompatibility | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)


async def warming_up(parts: Parts, work: Coroutine[None, None, None], warming: WarmUp | None = None) -> None:
    """Run `work`, and search once in the background, so that the first chat finds connections and caches ready.

    On success the file `warm-PID` in `run_dir` tells others. `work` never waits for it.
    """
    switch_often()
    await run_alongside([_warm(parts, warming or WarmUp())], work)


async def run_alongside(background: Sequence[Coroutine[None, None, None]], work: Coroutine[None, None, None]) -> None:
    """Run `work`, and `background` until it ends."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in background]
            await work
            for task in tasks:
                task.cancel()


async def _warm(parts: Parts, warming: WarmUp) -> None:
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            group.create_task(_search_once(parts, warming))
            if warming.template_compatibility is not None:
                group.create_task(warming.template_compatibility.probe_served_models())
    freeze_live_objects()
    (Path(parts.settings.run_dir) / f"warm-{os.getpid()}").touch()


async def _search_once(parts: Parts, warming: WarmUp) -> None:
    """Raises `BadSetting`, which ends the part, if the store's vectors are of another origin."""
    recall, options = parts.recall(), RequestOptions()
    loop = asyncio.get_running_loop()
    patient_until = loop.time() + STORE_PATIENCE_SECONDS
    while True:
        try:
            if warming.decides:
                await parts.training.run()
                await asyncio.to_thread(_rehearse, recording(parts.settings))
            await parts.questions.run()
            await parts.store.prepare()
            if warming.searches:
                question = await parts.embedder.embed([WARM_UP_QUESTION], is_urgent=True, as_query=True)
                # Like a user without a working set.
                await parts.store.search(MemoryFilter(WARM_UP_USER), question[0], limit=1)
                await parts.store.get(WARM_UP_USER, [WARM_UP_USER])  # like a user whose working set is refreshed
                await parts.stores.chat_states.read(ChatStateQuery(WARM_UP_USER, [WARM_UP_USER]))
                await recall.search(Scope(WARM_UP_USER), query=WARM_UP_QUESTION, history=(), options=options)
        except Unavailable:
            if loop.time() > patient_until:
                warming.ready.set()
            await asyncio.sleep(WARM_UP_PAUSE_SECONDS)
        else:
            warming.ready.set()
            return


def _rehearse(redact: Callable[[str], str]) -> None:
    """Rank and redact once: files of languages are read and patterns compiled now, not while a first chat waits."""
    redact(WARM_UP_QUESTION)
    memory = Memory(WARM_UP_USER, WARM_UP_USER, "Everything is there.", created_at=0.0, updated_at=0.0, said_at=0.0)
    rank_found([Candidate(memory, 1.0)], Question(Query(WARM_UP_QUESTION), Scope(WARM_UP_USER), now=0.0))


async def _serve_http(server: uvicorn.Server, until: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server._serve())  # without uvicorn's own signal handlers: the caller has them
        stopping = group.create_task(until.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if server.started:
            await _connections_closed(server)
        server.should_exit = True


async def _connections_closed(server: uvicorn.Server) -> None:
    """Accept no more connections, and answer what those that are open still bring: uvicorn closes idle ones at once,
    and a call that is on its way over one is lost.
    """
    for listener in server.servers:
        listener.close()
    until = time.monotonic() + API_CLOSING_SECONDS
    await asyncio.sleep(API_CLOSING_POLL_SECONDS)  # accepted in this moment, and not yet counted
    while server.server_state.connections and time.monotonic() < until:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(API_CLOSING_POLL_SECONDS)
