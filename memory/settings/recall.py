"""Signals about a request from filters ahead of us."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class UpstreamSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal of a filter ahead of us: if `name` holds one of `values` (none: any), the request is what `means` says.

    `name`: a header, or `NAMESPACE:KEY` of Envoy's dynamic metadata. A value may be a comma-separated list; case is
    ignored. `search` and `skip` are orders for every user message with text (not for tool results); the others are
    kinds of messages, which the user's own words may override.
    """

    name: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]+|[^:\s]+:\S+)$")]
    means: Literal["general_fact", "tool", "greeting", "personal", "task", "smalltalk", "search", "skip"]
    values: tuple[str, ...] = ()
