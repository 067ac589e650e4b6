"""Where memory is off, observed only, held back for comparison or traced; and what filters ahead of us say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memory.errors import BadSetting


class ShadowSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, "Whether recall only observes: it runs fully, with receipts and metrics, and adds no note."
    ] = False
    learns: Annotated[bool, "Whether chats are recorded and learnt from meanwhile."] = True


class HoldoutSettings(msgspec.Struct, frozen=True, kw_only=True):
    share: Annotated[
        float,
        Meta(ge=0, le=1),
        "Share of conversations that get no note although one was found, to compare them; 0: none.",
    ] = 0.0
    salt: Annotated[str, "Decides with the conversation which ones these are: another salt, other conversations."] = ""


@dataclass(frozen=True, slots=True)
class OffRoute:
    """Requests without memory: those of a host, "" for any, to a path or to one below it."""

    host: str
    path: str

    @classmethod
    def parsed(cls, text: str) -> OffRoute:
        """`[HOST[:PORT]]/PATH`. Raises `BadSetting`."""
        host, slash, path = text.partition("/")
        if not slash or any(character.isspace() for character in text) or "?" in text or "#" in text:
            raise BadSetting(
                f"memory.off_routes: expected [HOST]/PATH without a query, such as /v1/responses or "
                f"guests.example.com/, got {text!r:.80}"
            )
        return cls(_plain_host(host), "/" + path.rstrip("/"))

    def matches(self, authority: str, path: str) -> bool:
        """`authority`: host and port of the request. A host without a port matches every port."""
        asked = _plain_host(authority)
        if self.host and self.host not in (asked, _parted(asked)[0]):
            return False
        return self.path == "/" or path == self.path or path.startswith(self.path + "/")


def _plain_host(text: str) -> str:
    """As DNS compares: without case, and without the dot of the root."""
    host, colon, port = _parted(text.lower())
    return host.rstrip(".") + colon + port


def _parted(text: str) -> tuple[str, str, str]:
    """Host, colon, port; an IPv6 address stands in brackets."""
    host, colon, port = text.rpartition(":")
    return (host, colon, port) if colon and port.isdigit() else (text, "", "")


class UpstreamSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal of a filter ahead of us: if `name` holds one of `values` (none: any), the request is what `means` says.

    `name`: a header, or `NAMESPACE:KEY` of Envoy's dynamic metadata. A value may be a comma-separated list; case is
    ignored. `search` and `skip` are orders for every user message with text (not for tool results); the others are
    kinds of messages, which the user's own words may override.
    """

    name: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]+|[^:\s]+:\S+)$")]
    means: Literal["general_fact", "tool", "greeting", "personal", "task", "smalltalk", "search", "skip"]
    values: tuple[str, ...] = ()


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
