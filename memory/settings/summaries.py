"""Summaries of sessions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class SummarySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool,
        Meta(
            description="Whether sessions that are over get a summary, and questions about past conversations are "
            "given them."
        ),
    ] = True
    min_turns: Annotated[
        Annotated[int, Meta(ge=1, le=1_000)],
        Meta(description="Turns of a session in which the user says more than a greeting; with fewer it gets none."),
    ] = 2
