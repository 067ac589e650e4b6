"""Compaction of long conversations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class CompactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether long histories are compacted if a request does not say otherwise."] = False
    threshold_tokens: Annotated[
        int, Meta(ge=200, le=1_000_000), "Estimated tokens of a history from which on it is compacted."
    ] = 4_000
    writer: Annotated[
        Literal["auto", "off"],
        "Whether states are written by the chat model that reads messages, where there is one (`auto`), or always "
        "consist of sentences of the conversation (`off`).",
    ] = "auto"
