"""How long an erasure is on record."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class EraseSettings(msgspec.Struct, frozen=True, kw_only=True):
    keep_days: Annotated[
        int, Meta(ge=1, le=36_500), "Days for which an erasure is on record after its files were rewritten."
    ] = 90
