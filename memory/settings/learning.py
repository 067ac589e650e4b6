"""When and how finished turns are learnt."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class LearnSettings(msgspec.Struct, frozen=True, kw_only=True):
    reader: Annotated[
        Literal["auto", "model", "trained", "off"],
        Meta(
            description="Who reads messages: a chat `model` (role memory_extraction, else the upstream's first), our "
            "`trained` encoder, nobody (`off`); `auto`: the model once it has passed the exam, until then the encoder."
        ),
    ] = "auto"
    retry_attempts: Annotated[
        Annotated[int, Meta(ge=1, le=100)],
        Meta(description="Attempts at one window before it goes to the dead letters; outages do not count."),
    ] = 8
    retry_base_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)], Meta(description="First wait before a retry; it doubles each time.")
    ] = 1.0
    retry_max_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=86_400)], Meta(description="Longest wait between two attempts.")
    ] = 300.0
    model_outage_max_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=2_592_000)],
        Meta(
            description="How long a window waits for an extraction model that is down or refuses everybody, "
            "before it goes to the dead letters."
        ),
    ] = 21_600.0
    lease_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=3600)], Meta(description="How long a silent worker keeps its window.")
    ] = 30.0
    windows_in_flight_max: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        Meta(description="Windows of different users that one worker learns at a time."),
    ] = 4
    idle_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=86_400)] | None,
        Meta(
            description="With a model as the reader, a session is learnt this long after its last turn, 0: at once; "
            "none: 30. With the trained reader, turns are always due at once."
        ),
    ] = None
    session_end_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=604_800)],
        Meta(
            description="A session that is idle for this long has ended and is learnt completely, "
            "however long idle_seconds is."
        ),
    ] = 1800.0
    buffer_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)],
        Meta(description="A session with about this many tokens not learnt yet, answers included, is due."),
    ] = 4000
    drift_similarity: Annotated[
        Annotated[float, Meta(ge=0, le=1)],
        Meta(
            description="A turn whose cosine to all waiting turns of its session is lower than this starts "
            "another topic: "
            "the waiting turns are due. 0: topics do not count."
        ),
    ] = 0.1
    facts_per_session_max: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)],
        Meta(
            description="Facts learnt from one session per hour of conversation, so that no loop floods the memory; "
            "200 is one fact every 18 seconds."
        ),
    ] = 200
    queue_turns_max: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)],
        Meta(
            description="Finished turns that may wait to be learnt; beyond it the least valuable are shed, "
            "and can be restored with `memproxy dlq replay`."
        ),
    ] = 10_000
