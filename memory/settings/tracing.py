"""Traces."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class TracingSettings(msgspec.Struct, frozen=True, kw_only=True):
    endpoint: Annotated[
        str,
        "URL of an OpenTelemetry collector (OTLP over HTTP), without `/v1/traces`, such as http://127.0.0.1:4318. "
        "Empty: no traces.",
    ] = ""
    sample_ratio: Annotated[
        float,
        Meta(ge=0, le=1),
        "Share of the chats and windows that are traced. A chat whose client sends a `traceparent` is traced if "
        "that says so.",
    ] = 0.1
