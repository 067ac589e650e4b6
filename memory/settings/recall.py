"""What a request may be told by others."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class UpstreamSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What a filter ahead of us may say about a request: if `name` holds one of `values` (none: any), it `means` that.

    `name` is a header, or `NAMESPACE:KEY` of Envoy's dynamic metadata. A value may be a list with commas; case does not
    count. `search` and `skip` are orders, for every message of the user's that has a word in it (no tool's result);
    the others are kinds of messages, which what the user says may overrule.
    """

    name: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]+|[^:\s]+:\S+)$")]
    means: Literal["general_fact", "tool", "greeting", "personal", "task", "smalltalk", "search", "skip"]
    values: tuple[str, ...] = ()
