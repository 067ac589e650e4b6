"""The gRPC shell around both state machines, which does all the waiting.

One service plays two roles, distinguished by metadata that Envoy sends with each stream. A chat is never held: an error
in one stream ends that stream, and Envoy continues without it.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

import grpc
import structlog

from extproc import wire
from extproc._pb import external_processor_pb2 as pb
from extproc.addresses import has_secret
from extproc.edge_trust import EdgeTrust, signal_reader
from extproc.exchange import TurnSeed
from extproc.health import Health
from extproc.identity import IdentityMode, IdentityRules
from extproc.inject import (
    Command,
    CountPassed,
    CountRefused,
    CountRequest,
    Event,
    Finish,
    Injection,
    Proceed,
    Recalled,
    RecallMemories,
    Reject,
)
from extproc.large_bodies import LIGHT, Uploads
from extproc.observe import Observation
from extproc.observed_stream import ObservedStream
from extproc.recorder import ModelLessons, TurnRecorder
from extproc.resent_history import RecordingPolicy
from memory.chat.envelopes import Envelopes
from memory.errors import BadSetting
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES
from memory.model.web_pages import TrustedPages
from memory.model.zones import Zones
from memory.processes import composition, entrypoints
from memory.processes.background_parts import compactor_of
from memory.processes.from_settings import claim_names, is_recording, recording
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.recall.pipeline import RecallPipeline
from memory.runtime.tracing import SpanName, Telemetry
from memory.sessions.compaction.compactor import Compactor
from memory.settings import OffRoute, Settings

log = structlog.get_logger(__name__)

MESSAGE_BYTES_MAX = CHAT_BYTES_MAX + (8 << 20)  # plus our notes and the message's overhead
HEAVY_SECONDS = 2.0  # requested for a body of many MiB; envoy.yaml allows no more
NOT_SENT = (CountPassed("busy"), Proceed(wants_body=False))
PASSED_ON = (CountPassed("busy"), Finish())
CUT_SECONDS = 0.5  # for streams that begin in the moment in which we stop
SETTLE_SECONDS = 1.0  # for cancelled streams to hand over what they observed

OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),  # beyond the default of 4 MB a prompt would not be stripped
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),  # one process has one socket: Envoy balances, not the kernel
    ("grpc.http2.min_ping_interval_without_data_ms", 100),  # Envoy pings idle connections to check that we are alive;
    ("grpc.http2.max_ping_strikes", 0),  # by default gRPC treats that as an attack and closes all streams
    ("grpc.keepalive_permit_without_calls", 1),
)

T = TypeVar("T")
Requests: TypeAlias = AsyncIterator[pb.ProcessingRequest]
Context: TypeAlias = "grpc.aio.ServicerContext[pb.ProcessingRequest, pb.ProcessingResponse]"


class Filter:
    def __init__(
        self,
        *,
        recall: RecallPipeline,
        recorder: TurnRecorder,
        trust: EdgeTrust,
        telemetry: Telemetry,
        new_id: Callable[[], str],
        is_recording: bool = True,
    ) -> None:
        """`new_id` generates turn ids where Envoy gives none; without `is_recording` nothing is recorded."""
        self._uploads = Uploads(trust.slots)
        self._large = recorder.large_bodies
        self._is_recording = is_recording
        self._recall = recall
        self._recorder = recorder
        self._trust = trust
        self._metrics = telemetry.metrics
        self._tracer = telemetry.tracer
        self._new_id = new_id
        self._streams = 0
        self._is_settled = asyncio.Event()
        self._is_settled.set()

    async def settled(self) -> None:
        await self._is_settled.wait()

    async def process(self, requests: Requests, context: Context) -> None:
        metadata = dict(context.invocation_metadata() or ())
        parent = str(metadata.get("traceparent", ""))  # Envoy's span of this call
        if not has_secret(metadata, self._trust.secret):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "MEMPROXY_EDGE_SECRET is another one here")
        self._streams += 1
        self._is_settled.clear()
        try:
            if metadata.get("x-role") == "observe":
                await error_boundary(self._traced(SpanName.OBSERVE, parent, self._observe(requests)))
            else:
                await error_boundary(self._traced(SpanName.INJECT, parent, self._inject(requests, context)))
        finally:
            self._streams -= 1
            if not self._streams:
                self._is_settled.set()

    async def _traced(self, name: SpanName, parent: str, work: Coroutine[Any, Any, None]) -> None:
        with self._tracer.span(name, parent=parent):
            await work

    # The request side

    async def _inject(self, requests: Requests, context: Context) -> None:
        injection = Injection(self._trust, seed=self._seed() if self._is_recording else None)
        async with self._uploads.stream() as upload:
            async for message in requests:
                upload.arrived()
                event = wire.injection_event(message, self._recorder.clock())
                if event is not None and not await self._answered(injection, event, context):
                    return  # the stream must not live as long as the generation
                upload.wait(injection.body_bytes)
        if upload.has_given_up:
            self._metrics.bodies_passed.labels("slow_upload").inc()

    async def _answered(self, injection: Injection, event: Event, context: Context) -> bool:
        """Pass on an event, and execute the state machine's commands; whether it expects further events."""
        if not injection.is_heavy(event):
            return await self._executed(injection, injection.on(event), context)
        if not isinstance(event, Recalled):
            await context.write(wire.more_time(HEAVY_SECONDS))
            if not await self._large.has_turn(injection.exchange):
                return await self._executed(injection, PASSED_ON, context)
        with self._large.work(injection.exchange):
            return await self._executed(injection, await asyncio.to_thread(injection.on, event), context)

    async def _executed(self, injection: Injection, commands: Sequence[Command], context: Context) -> bool:
        for command in commands:
            match command:
                case Proceed(wants_body):
                    is_large = injection.body_bytes > HEAVY_BODY_BYTES
                    if wants_body and is_large and not self._large.has_room(injection.exchange):
                        return await self._executed(injection, NOT_SENT, context)
                    await context.write(wire.proceed(command))
                    return wants_body
                case Finish():
                    await context.write(wire.finish(command))
                    return False
                case Reject():
                    await context.write(wire.reject())
                    return False
                case RecallMemories():
                    return await self._answered(injection, await self._recalled(command, injection.exchange), context)
                case _:
                    self._count(command)
        return False

    async def _recalled(self, command: RecallMemories, exchange: str) -> Recalled:
        """What recall found, once the turn is in the log or late: a process that is killed takes no words along that
        the upstream has got.
        """
        request = command.request
        self._recorder.probe_template(request.conversation.model if request.conversation else "")
        work = partial(self._large.work, exchange) if request.is_heavy else LIGHT
        opening = self._recorder.open_early(command.opening, work) if command.opening is not None else None
        found = await self._recall.recall(command.scope, request, command.upstream)
        opened = await opening if opening is not None else None
        return Recalled(found, opened)

    def _count(self, command: CountPassed | CountRefused | CountRequest) -> None:
        match command:
            case CountPassed(reason):
                self._tracer.note(status="passed", reason=reason)
                self._metrics.bodies_passed.labels(reason).inc()
            case CountRefused(reason):
                self._tracer.note(status="identity_refused", reason=reason)
                self._metrics.identity_refused.labels(reason).inc()
            case CountRequest(status, reason):
                self._tracer.note(status=status, reason=reason)
                self._metrics.requests.labels(status, reason).inc()

    def _seed(self) -> TurnSeed:
        return TurnSeed(self._new_id(), self._tracer.trace_id())

    # The reply side

    async def _observe(self, requests: Requests) -> None:
        observation = Observation(self._trust, seed=self._seed(), is_recording=self._is_recording)
        observed = ObservedStream(self._recorder, observation)
        try:
            async for message in requests:
                left = wire.left_by_inject(message)
                if left is not None:
                    await observed.begin_reply(left)
                step = partial(wire.observe, message, self._recorder.clock())
                await observed.take(step, ends_reply=wire.ends_reply(message))
                if observed.is_idle:
                    return  # closing our stream affects nobody
        finally:
            observed.end()  # the client may disconnect at any time: what was observed until then counts


async def error_boundary(work: Coroutine[Any, Any, T]) -> T | None:
    """The error boundary of one stream and of its work in the recorder: an error ends only that.

    The stream then ends without an error status, because Envoy would count it against this process, so that one
    malformed body, sent repeatedly, would disable memory for everybody. The log gets location and type of the error,
    but no message or variables, which could contain user text.
    """
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - one of the two places where anything at all may arrive
        log.error("stream_failed", error=type(error).__name__, frames=traceback.format_tb(error.__traceback__))
        return None


async def serve(
    filter_: Filter, recorder: TurnRecorder, *, target: str, ready: asyncio.Event, until: asyncio.Event, grace: float
) -> None:
    """Serve both roles at a gRPC target until told to stop, then drain: finish streams, write what was observed.

    `recorder`: the filter's own, which is opened and closed here. `ready`: when recall works. `grace`: seconds at most
    for streams in progress, which last as long as replies. Returns when everything is in the turn log.
    """
    async with recorder, asyncio.TaskGroup() as tasks:
        server, health = grpc.aio.server(options=OPTIONS), Health()
        await health.join(server)
        server.add_generic_rpc_handlers((_handlers(filter_),))
        _bind(server, target)
        await server.start()
        entering = tasks.create_task(_enter(health, ready))
        try:
            await until.wait()
            await health.leave()
            with suppress(TimeoutError):
                await asyncio.wait_for(filter_.settled(), grace)
        finally:
            entering.cancel()
            recorder.leave()
            await server.stop(CUT_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(filter_.settled(), SETTLE_SECONDS)


async def _enter(health: Health, ready: asyncio.Event) -> None:
    await ready.wait()
    await health.enter()


def _bind(server: grpc.aio.Server, target: str) -> None:
    try:
        server.add_insecure_port(target)
    except RuntimeError as error:
        raise BadSetting(f"the filter cannot listen on {target}: give another address") from error


async def run(settings: Settings, until: asyncio.Event, *, target: str, secret: str = "") -> None:
    """The filter process: builds the parts from the settings and serves until told to stop.

    `secret`: which calls must bring, if any.
    """
    ready = asyncio.Event()
    async with composition.open_parts(settings, is_hurried=True, traced_as="filter") as parts:
        template_compatibility, compactor = parts.template_compatibility(), compactor_of(parts)
        filter_, recorder = filter_on(parts, template_compatibility, compactor, secret=secret)
        serving = serve(filter_, recorder, target=target, ready=ready, until=until, grace=settings.drain_seconds)
        background = parts.windows.run(), compactor.run(error_boundary), parts.stores.chat_states.follow_withdrawals()
        with_background = entrypoints.run_alongside(background, serving)
        warming = entrypoints.WarmUp(decides=True, template_compatibility=template_compatibility, ready=ready)
        await entrypoints.warming_up(parts, with_background, warming)


def filter_on(
    parts: composition.Parts, templates: TemplateCompatibility, compactor: Compactor, *, secret: str = ""
) -> tuple[Filter, TurnRecorder]:
    """The service and its recorder, not open."""
    settings, records = parts.settings, is_recording(parts.settings)
    recorder = TurnRecorder(
        parts.state.turn_log,
        parts.metrics,
        parts.telemetry.clock,
        error_boundary,
        RecordingPolicy(
            recording(settings),
            settings.memory.turn_log.fill_in,
            parts.telemetry.tracer,
            parts.stores.opt_outs,
            early_seconds_max=settings.memory.deadline_ms / 1000,
        ),
        ModelLessons(templates, parts.windows),
    )
    filter_ = Filter(
        recall=parts.recall(compactor.prepare if records else None),
        recorder=recorder,
        trust=edge_trust(settings, secret=secret),
        telemetry=parts.telemetry,
        new_id=composition.new_id,
        is_recording=records,
    )
    return filter_, recorder


def edge_trust(settings: Settings, *, secret: str = "") -> EdgeTrust:
    memory = settings.memory
    return EdgeTrust(
        IdentityMode(settings.identity),
        signal_reader(memory.upstream_signals),
        IdentityRules(claim_names(settings), TrustedPages(memory.identity.trusted_origins)),
        rejects_mismatches=memory.identity.on_mismatch == "reject",  # envoy.yaml then permits the filter to answer
        off_routes=tuple(map(OffRoute.parsed, memory.off_routes)),
        envelopes=Envelopes.parsed(memory.envelopes),
        zones=Zones(memory.timezone),
        secret=secret,
        slots=memory.filter_in_flight_max,
    )


def _handlers(filter_: Filter) -> grpc.GenericRpcHandler:
    """Written by hand, since the service has Envoy's name and our message types."""
    process = grpc.stream_stream_rpc_method_handler(
        filter_.process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(wire.SERVICE, {wire.METHOD: process})
