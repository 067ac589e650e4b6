"""How files are rewritten after a user was erased, and how long an erasure is on record."""

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
    keep_days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)],
        Meta(
            description="Days for which an erasure is on record after its files were rewritten; nobody can ask for its "
            "proof later."
        ),
    ] = 90
