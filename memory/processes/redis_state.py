"""Keeps on Redis what many machines share besides memories.

Imported only where `redis_url` is set: the library costs memory and a third of a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from memory.adapters.redis import log_keys
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.compacted_states import RedisCompactedStates
from memory.adapters.redis.connecting import RedisAddress, connected
from memory.adapters.redis.deleted_keys import RedisDeletedKeys
from memory.adapters.redis.erasures import RedisErasures
from memory.adapters.redis.exams import RedisExamResults
from memory.adapters.redis.holdout_record import RedisHoldoutRecord
from memory.adapters.redis.idempotency_keys import RedisIdempotencyKeys
from memory.adapters.redis.key_scan import RedisKeyScan
from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.model_capabilities import RedisModelCapabilities
from memory.adapters.redis.notes import RedisNoteBook
from memory.adapters.redis.opt_outs import RedisOptOuts
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.profiles import RedisProfiles
from memory.adapters.redis.projects import RedisProjects
from memory.adapters.redis.receipts import RedisReceipts
from memory.adapters.redis.server_check import check_servers, server_time
from memory.adapters.redis.session_summaries import RedisSummaries
from memory.adapters.redis.snapshots import RedisSnapshots
from memory.adapters.redis.upkeep_schedule import RedisUpkeepSchedule
from memory.adapters.redis.usage_counts import RedisUsageCounts
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.adapters.redis.write_barrier import RedisWriteBarrier
from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.ports import Clock
from memory.ports.holdouts import HoldoutRecord
from memory.ports.snapshots import Snapshots
from memory.processes.from_settings import note_limits, receipt_limits, recording
from memory.processes.kept_state import ExaminedState, KeptState, Process
from memory.processes.running_parts import introduction
from memory.settings.loader import Settings


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[LogClient]:
    """The server, checked: it keeps what it acknowledges. Raises `BadSetting` if it does not, `Unavailable`."""
    redis = settings.memory.redis
    address = RedisAddress(settings.redis_url, redis.username, redis.password, redis.certificate_authority)
    async with connected(address) as client:
        await check_servers(client, survives_power_failure=settings.memory.turn_log.synchronous == "FULL")
        yield client


async def open_redis_state(process: Process, stack: AsyncExitStack, *, origin: VectorOrigin) -> KeptState:
    """The stack closes it. `origin`: of the vectors in the store. Raises `BadSetting`, `Unavailable`."""
    settings, clock = process.settings, process.instruments.clock
    client = await stack.enter_async_context(open_redis(settings))
    owners = await stack.enter_async_context(RedisOwners(client, introduction=introduction(process.part)))
    background = await stack.enter_async_context(RedisBackground())
    return KeptState(
        turn_log=RedisTurnLog(client, owners, clock=clock),
        ledger=RedisUserLedger(client, owners, clock=clock),
        notes=RedisNoteBook(client, limits=note_limits(settings)),
        receipts=RedisReceipts(
            client, background, clock=clock, redact=recording(settings), limits=receipt_limits(settings)
        ),
        usage_counts=await stack.enter_async_context(RedisUsageCounts(client, background)),
        profiles=RedisProfiles(client),
        states=RedisCompactedStates(client),
        summaries=RedisSummaries(client, origin=str(origin)),
        idempotency=RedisIdempotencyKeys(client),
        opt_outs=RedisOptOuts(client),
        projects=RedisProjects(client),
        upkeep_schedule=RedisUpkeepSchedule(client),
        model_capabilities=RedisModelCapabilities(client, clock=clock),
        exams=RedisExamResults(client, clock=clock),
        erasures=RedisErasures(client),
        barrier=RedisWriteBarrier(client, owners, clock=clock),
        rewriting=RedisDeletedKeys(client),
        snapshots=_snapshots(client, background, process),
        introductions=owners.introductions,
        scan=RedisKeyScan(client),
    )


@asynccontextmanager
async def open_redis_snapshots(settings: Settings, clock: Clock) -> AsyncIterator[Snapshots]:
    """For a tool that erases them all."""
    async with open_redis(settings) as client, RedisBackground() as background:
        yield RedisSnapshots(client, background, bytes_max=0, clock=clock)


@asynccontextmanager
async def open_redis_holdouts(settings: Settings) -> AsyncIterator[HoldoutRecord]:
    async with open_redis(settings) as client:
        if not await client.call("EXISTS", log_keys.QUEUE_SEQ):
            raise BadSetting(f"nothing was recorded on {settings.redis_url}: name the redis_url of the deployment")
        yield RedisHoldoutRecord(client)


@asynccontextmanager
async def open_redis_examined(settings: Settings, clock: Clock) -> AsyncIterator[ExaminedState]:
    async with open_redis(settings) as client, RedisOwners(client) as owners:
        yield ExaminedState(
            where=settings.redis_url,
            queue=RedisTurnLog(client, owners, clock=clock),
            opt_outs=RedisOptOuts(client),
            exams=RedisExamResults(client, clock=clock),
            introductions=owners.introductions,
            server_time=partial(server_time, client),
        )


async def processes_on_redis(settings: Settings) -> int:
    async with open_redis(settings) as client:
        return len(await RedisOwners(client).find_living())


def _snapshots(client: LogClient, background: RedisBackground, process: Process) -> Snapshots | None:
    bytes_max, clock = process.settings.memory.snapshots.total_mib << 20, process.instruments.clock
    if not bytes_max:
        return None
    snapshots = RedisSnapshots(client, background, bytes_max=bytes_max, clock=clock)
    client.give_way(snapshots.delete_least_used)
    return snapshots


__all__ = [
    "open_redis",
    "open_redis_examined",
    "open_redis_holdouts",
    "open_redis_snapshots",
    "open_redis_state",
    "processes_on_redis",
]
