"""Summaries of sessions."""

from __future__ import annotations

from typing import Annotated

import msgspec


class SummarySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, "Whether sessions that are over get a summary, and questions about past conversations are given them."
    ] = True
