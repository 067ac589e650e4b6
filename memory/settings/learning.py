"""When and how finished turns are learnt."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class LearnSettings(msgspec.Struct, frozen=True, kw_only=True):
    reader: Annotated[
        Literal["auto", "model", "trained", "off"],
        "Who reads messages: a chat `model` (role memory_extraction, else the upstream's first), our `trained` "
        "encoder, nobody (`off`); `auto`: the model once it has passed the exam, until then the encoder.",
    ] = "auto"
    retry_max_seconds: Annotated[float, Meta(gt=0, le=86_400), "Longest wait between two attempts."] = 300.0
    lease_seconds: Annotated[float, Meta(ge=1, le=3600), "How long a silent worker keeps its window."] = 30.0
    idle_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=86_400)] | None,
        "With a model as the reader, a session is learnt this long after its last turn, 0: at once; none: 30. With "
        "the trained reader, turns are always due at once.",
    ] = None
    session_end_seconds: Annotated[
        float,
        Meta(ge=1, le=604_800),
        "A session that is idle for this long has ended and is learnt completely, however long idle_seconds is.",
    ] = 1800.0
