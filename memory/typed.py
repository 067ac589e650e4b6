"""Decodes into types, from whatever thread.

msgspec 0.22 builds its table of a type where it first meets the type, and ends the process with a segmentation fault if
two threads do so at once (four threads that decode a new type do). Here one thread builds it for all.
Decoders that a module makes while it is imported are built by one thread too.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

Decoded = TypeVar("Decoded")

_BUILDING = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def from_json(text: bytes | str, kind: type[Decoded]) -> Decoded:
    """Raises `msgspec.DecodeError`, also of what is not of that type, and what `msgspec.json.decode` raises besides."""
    decoded: Decoded = _built(kind).decode(text)
    return decoded


def from_toml(text: bytes | str, kind: type[Decoded]) -> Decoded:
    _built(kind)
    return msgspec.toml.decode(text, type=kind)  # noqa: TID251 - the place for it


def converted(value: Any, kind: type[Decoded], *, strict: bool = True) -> Decoded:  # noqa: ANN401 - decoded data
    """Raises `msgspec.ValidationError`."""
    _built(kind)
    return msgspec.convert(value, kind, strict=strict)  # noqa: TID251 - the place for it


def _built(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - also `list[Turn]` or a union
    decoder = _decoders.get(kind)
    if decoder is None:
        with _BUILDING:
            decoder = _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    return decoder
