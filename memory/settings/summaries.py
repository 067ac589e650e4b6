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
