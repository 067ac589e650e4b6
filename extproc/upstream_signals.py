"""What filters ahead of us say about a request, in headers and in Envoy's metadata, put into words of the domain.

Which names may speak is a setting. Envoy forwards only those to us, and removes the headers among them from whoever is
not trusted (envoy/envoy.yaml), since a client could steer its own search with them; metadata no client can set. This
step must never read a name that no rule names, and never judge what was said: that is for
memory/recall/signals/upstream.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from extproc.identity import Headers, Metadata
from memory.recall.signals.upstream import (
    DEFAULT_RULES,
    NO_SIGNALS,
    UpstreamRule,
    UpstreamSignals,
    names_of,
    read_upstream,
)
from memory.settings import UpstreamSignal

BETWEEN = ":"  # between namespace and key; no header has one in its name


@dataclass(frozen=True, slots=True)
class SignalReader:
    """The rules in force, and the names that they read: `headers` in lower case, `namespaces` of dynamic metadata."""

    rules: tuple[UpstreamRule, ...] = DEFAULT_RULES
    headers: tuple[str, ...] = field(init=False)
    namespaces: tuple[str, ...] = field(init=False)
    _keys: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        names = sorted(names_of(self.rules))
        keys = tuple(_parted(name) for name in names if BETWEEN in name)
        object.__setattr__(self, "headers", tuple(name for name in names if BETWEEN not in name))
        object.__setattr__(self, "namespaces", tuple(sorted({namespace for namespace, _ in keys})))
        object.__setattr__(self, "_keys", keys)

    def read_signals(self, headers: Headers, metadata: Metadata) -> UpstreamSignals:
        """What was said about the request that came with these. Never raises."""
        said = self._said_in_headers(headers) | self._said_in_metadata(metadata)
        return read_upstream(said, self.rules) if said else NO_SIGNALS

    def _said_in_headers(self, headers: Headers) -> dict[str, str]:
        """A header that comes several times is one list with commas, as HTTP has it."""
        said: dict[str, str] = {}
        for name, value in headers:
            if name in self.headers:
                text = value.decode("latin-1")
                said[name] = f"{said[name]},{text}" if name in said else text
        return said

    def _said_in_metadata(self, metadata: Metadata) -> dict[str, str]:
        found = ((f"{space}{BETWEEN}{key}", _as_text(metadata.get(space, {}).get(key))) for space, key in self._keys)
        return {name: text for name, text in found if text}


def signal_reader(signals: Sequence[UpstreamSignal] | None) -> SignalReader:
    """The reader for a setting; None means the rules that are built in, nothing at all means that nobody is heard."""
    if signals is None:
        return SignalReader()
    return SignalReader(tuple(_rule(signal) for signal in signals))


def _rule(signal: UpstreamSignal) -> UpstreamRule:
    name = signal.name if BETWEEN in signal.name else signal.name.lower()
    return UpstreamRule(name, tuple(value.strip().casefold() for value in signal.values), signal.means)


def _parted(name: str) -> tuple[str, str]:
    namespace, _, key = name.partition(BETWEEN)
    return namespace, key


def _as_text(value: object) -> str:
    """A value of metadata as a header would have it; "" for what no rule can match."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


__all__ = ["SignalReader", "signal_reader"]
