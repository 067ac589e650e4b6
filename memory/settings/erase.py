"""How files are rewritten after a user was erased."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class EraseSettings(msgspec.Struct, frozen=True, kw_only=True):
    rewrite_mib_max: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)],
        Meta(
            description="Largest turns.sqlite that is written anew while memproxy runs, in MiB; writers wait meanwhile."
        ),
    ] = 256


__all__ = ["EraseSettings"]
