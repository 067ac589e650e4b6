"""What is made of memories and conversations: profiles, summaries of sessions, and states of long histories."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ProfileSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether profiles are built from memories and go along with chats."] = True
    goes_along: Annotated[
        Literal["with_memories", "searched", "always"],
        "The question of a conversation that the profile goes along with: the first for which memories are found, "
        "for which they are searched, or any.",
    ] = "with_memories"


class SummarySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, "Whether sessions that are over get a summary, and questions about past conversations are given them."
    ] = True


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
