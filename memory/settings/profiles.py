"""Profiles of users and projects."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class ProfileSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether profiles are built from memories and go along with chats."] = True
    goes_along: Annotated[
        Literal["with_memories", "searched", "always"],
        "The question of a conversation that the profile goes along with: the first for which memories are found, "
        "for which they are searched, or any.",
    ] = "with_memories"
