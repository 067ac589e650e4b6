"""A real Envoy with real filters behind it, in front of a recording upstream; only recall is told what to find.

The filters and the turn log live in the test's own loop, Envoy is a process of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from api_shapes import ASKED_COMPLETIONS, AskedShape
from prometheus_client import CollectorRegistry
from turn_logs import sqlite_deployment

from extproc.addresses import HostAndPort, unix_target
from extproc.large_bodies import LargeBodies
from extproc.recorder import ModelLessons, TurnRecorder
from extproc.resent_history import RecordingPolicy
from extproc.server import Filter, edge_trust, error_boundary, serve
from extproc.supervisor.bootstrap import EnvoyPlan, render_unchecked
from extproc.supervisor.locks_and_ports import reserve_port
from memory.adapters.models.upstream_models import UpstreamModels
from memory.chat.completions import ChatRequest
from memory.model import Note, Placement, RecallStatus, Role, Scope, Turn
from memory.ports import ChatTemplates, Clock, ModelCapabilities, TurnLog
from memory.recall.known_windows import KnownWindows
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.recall.pipeline import RecallOutcome
from memory.recall.signals.upstream import UpstreamSignals
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.secrets.redaction import redact
from memory.settings import MemorySettings, Settings

ENVOY = Path(sys.executable).with_name("envoy")
EDGE_SECRET = "s3cret-of-this-run"
READY_SECONDS = 60.0
CHECK_SECONDS_MAX = 1.1  # what Envoy waits for the answer to a health check, and a little
PATIENT_SECONDS = 15.0  # for an answer of the filter: a busy machine stands still longer than the product waits
NOTE = "Their cat is called Miu."
CLOCK: Clock = time.time  # noqa: TID251 - what memory/processes/composition.py hands in


@dataclass
class ScriptedRecall:
    """Finds `NOTE` for everybody, after `seconds` and once `may_end`. It stands where the model's traits say, else at
    `placement`.
    """

    model_capabilities: ModelCapabilities
    placement: Placement = Placement.SYSTEM
    seconds: float = 0.0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    asked: list[tuple[Scope, ChatRequest]] = field(default_factory=list)
    signals: list[UpstreamSignals] = field(default_factory=list)

    def begin(self) -> None:
        """Forget what was asked and what a test has set."""
        self.placement, self.seconds, self.error = Placement.SYSTEM, 0.0, None
        self.may_end.set()
        self.asked.clear()
        self.signals.clear()

    async def recall(self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals) -> RecallOutcome:
        self.asked.append((scope, request))
        self.signals.append(upstream)
        await asyncio.sleep(self.seconds)
        await self.may_end.wait()
        if self.error:
            raise self.error
        assert request.conversation is not None
        placement = await self.model_capabilities.placement(request.conversation.model) or self.placement
        receipt_id = f"r-{len(self.asked)}"
        if placement is Placement.OFF:
            return RecallOutcome(RecallStatus.DISABLED, "placement_off", 0, receipt_id)
        said = [index for index, one in enumerate(request.conversation.messages) if one.role == Role.USER]
        before = None if placement is Placement.SYSTEM or not said else said[-1]
        return RecallOutcome(RecallStatus.USED, "searched", 1, receipt_id, (Note(NOTE, before),))


@dataclass
class RunningFilter:
    """One filter process in all but the process."""

    target: str
    ready: asyncio.Event
    until: asyncio.Event
    serving: asyncio.Task[None]
    large_bodies: LargeBodies

    async def leave(self) -> None:
        """Drain and wait for the end."""
        self.until.set()
        await self.serving


@dataclass
class FilterStack:
    """What a test talks to and looks at."""

    plan: EnvoyPlan
    recall: ScriptedRecall
    turn_log: TurnLog
    templates: ChatTemplates
    windows: KnownWindows
    metrics: Metrics
    tasks: asyncio.TaskGroup
    ids: Any = field(default_factory=itertools.count)
    filters: list[RunningFilter] = field(default_factory=list)
    used_at: float = 0.0  # when a test that shares it ended, on the monotonic clock
    counted_before: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[FilterStack]:
        """To one of the tests that share it, with healthy filters: their loop stood still between tests."""
        if time.monotonic() - self.used_at > CHECK_SECONDS_MAX:  # a check may just be failing
            await asyncio.sleep(CHECK_SECONDS_MAX)
        await self.wait_for_filters(len(self.filters))
        self.begin()
        yield self
        self.used_at = time.monotonic()

    def begin(self) -> None:
        """As nobody had asked anything yet, but for the record of turns: for a test that shares it with others."""
        self.recall.begin()
        samples = (sample for family in self.metrics.registry.collect() for sample in family.samples)
        self.counted_before = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}

    @property
    def settings(self) -> Settings:
        return self.plan.settings

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.settings.envoy_admin_port}"

    def client(self, source: str = "127.0.0.1") -> httpx.AsyncClient:
        """A client that connects from that address."""
        return httpx.AsyncClient(
            base_url=self.url, transport=httpx.AsyncHTTPTransport(local_address=source), timeout=30, trust_env=False
        )

    async def chat(
        self,
        body: bytes | Mapping[str, Any],
        *,
        shape: AskedShape = ASKED_COMPLETIONS,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers}
        async with self.client(source) as client:
            return await client.post(shape.shape.path, content=content, headers=headers)

    def start_filter(
        self, target: str, *, is_ready: bool = True, grace: float = 1.0, secret: str = ""
    ) -> RunningFilter:
        """At a gRPC target. `grace`: seconds for replies in progress when it leaves. `secret`: of calls."""
        ready, until = asyncio.Event(), asyncio.Event()
        template_compatibility = TemplateCompatibility(
            model_capabilities=self.recall.model_capabilities,
            templates=self.templates,
            clock=CLOCK,
            metrics=self.metrics,
        )
        recorder = TurnRecorder(
            self.turn_log,
            self.metrics,
            CLOCK,
            error_boundary,
            RecordingPolicy(redact, True),
            ModelLessons(template_compatibility, self.windows),
        )
        recorder.large_bodies = LargeBodies(rests=0.0, wait_seconds_max=PATIENT_SECONDS)
        filter_ = Filter(
            recall=self.recall,
            recorder=recorder,
            trust=edge_trust(self.settings, secret=secret),
            telemetry=Telemetry(CLOCK, self.metrics),
            new_id=lambda: f"t-{next(self.ids)}",
        )
        if is_ready:
            ready.set()
        serving = serve(filter_, recorder, target=target, ready=ready, until=until, grace=grace)
        running = RunningFilter(target, ready, until, self.tasks.create_task(serving), recorder.large_bodies)
        self.filters.append(running)
        return running

    async def wait_for_filters(self, count: int) -> None:
        """Until Envoy itself believes that so many filters are healthy, in both roles."""
        async with asyncio.timeout(READY_SECONDS):
            for role in ("inject", "observe"):
                while await self.healthy(role) != count:
                    await asyncio.sleep(0.05)

    async def healthy(self, role: str) -> int | None:
        """How many filters Envoy believes to be healthy in this role; None before it knows."""
        async with httpx.AsyncClient(base_url=self.admin_url, trust_env=False) as admin:
            try:
                page = await admin.get("/stats", params={"filter": f"^cluster.memory_{role}.membership_healthy$"})
            except httpx.TransportError:
                return None
        return int(page.text.rpartition(":")[2]) if page.text.strip() else None

    async def turns(self, user_id: str, *, until: int = 0) -> list[Turn]:
        """The record of a user, once it has `until` turns that are no longer open."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            turns = [turn async for turn in self.turn_log.turns(user_id)]
            if sum(turn.status != "opened" for turn in turns) >= until or time.monotonic() > deadline:
                return turns
            await asyncio.sleep(0.02)

    def count(self, name: str, **labels: str) -> float:
        """Since the test began."""
        now = self.metrics.registry.get_sample_value(name, labels) or 0.0
        return now - self.counted_before.get((name, frozenset(labels.items())), 0.0)


@asynccontextmanager
async def running_stack(
    upstream: str,
    *,
    filters: int = 1,
    rewrite: tuple[bytes, bytes] = (b"", b""),
    is_patient: bool = True,
    secret: str = "",
    addresses: tuple[HostAndPort, ...] = (),
    memory: Mapping[str, Any] = MappingProxyType({}),
    **settings: Any,
) -> AsyncIterator[FilterStack]:
    """Envoy, `filters` filters and a SQLite turn log.

    `rewrite` replaces a piece of Envoy's rendered configuration. Where it is patient, Envoy waits `PATIENT_SECONDS`
    for a filter, not what the product waits. `secret`: what calls of the filters must bring.
    `addresses`: of filters, in the place of sockets. `memory`, and other `settings`: unlike usual.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stack-")))
        process = await stack.enter_async_context(sqlite_deployment(folder).start())
        templates = await stack.enter_async_context(UpstreamModels(upstream))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        reserved = [stack.enter_context(reserve_port("127.0.0.1", 0, setting="a port of the test")) for _ in range(2)]
        port, admin_port = (one.getsockname()[1] for one in reserved)  # held until the end: nobody else gets them
        given = Settings(
            upstream=upstream,
            port=port,
            envoy_admin_port=admin_port,
            memory=MemorySettings(**{"filter_in_flight_max": 10_000, **memory}),
            **{"api_port": 1, "trusted_peers": ("127.0.0.0/8",), **settings},
        )
        sockets = () if addresses else tuple(folder / f"f{number}.sock" for number in range(filters))
        plan = EnvoyPlan(given, sockets, addresses)
        recall = ScriptedRecall(process.capabilities)
        recall.begin()
        windows = KnownWindows(UpstreamModels(""), clock=CLOCK)
        running = FilterStack(plan, recall, process.log, templates, windows, Metrics(CollectorRegistry()), tasks)
        targets = [*map(unix_target, plan.filter_sockets), *(one.target for one in addresses)]
        for target in targets:
            running.start_filter(target, secret=secret)
        stack.callback(lambda: [one.until.set() for one in running.filters])
        config = folder / "envoy.json"
        rendered = render_unchecked(plan).replace(*rewrite) if rewrite[0] else render_unchecked(plan)
        config.write_bytes(_patient(rendered) if is_patient else rendered)
        await stack.enter_async_context(running_envoy(config))
        await running.wait_for_filters(len(targets))
        yield running


@asynccontextmanager
async def running_envoy(config: Path) -> AsyncIterator[None]:
    """Envoy with this configuration; its log on our stderr."""
    process = await asyncio.create_subprocess_exec(
        ENVOY,
        *("-c", str(config), "--disable-hot-restart", "--concurrency", "1", "--log-level", "warn"),
        env={"MEMPROXY_EDGE_SECRET": EDGE_SECRET, "PATH": os.defpath},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield
    finally:
        process.terminate()
        printed, _ = await process.communicate()
        assert printed == b"", "Envoy's stdout belongs to the supervisor"


def _patient(rendered: bytes) -> bytes:
    patient, waits = re.subn(rb'(message_timeout":) "[^"]+"', rb'\1 "%gs"' % PATIENT_SECONDS, rendered)
    assert waits, "Envoy's configuration has other names for them"
    return patient
