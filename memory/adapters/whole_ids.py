"""Finds an id of a user where it stands as a whole value: not as a part of another id, and not as a word of a text.

In a value of a column, that is the value itself, or what stands between quotation marks in it, as in JSON; in the bytes
of a file, what stands between quotation marks, and in a text file between commas, tabs and ends of lines as well. It is
sought as UTF-8, as UTF-16 in both orders, escaped as in JSON, and in base64; in a snapshot of a working set as
MessagePack.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import BinaryIO

import msgspec

from memory.recall.ranking.snapshot import BODY_FROM, MAGIC

PIECE_BYTES = 8 << 20
BASE64_CHARACTERS_MIN = 5  # fewer stand in other encoded bytes by chance
_QUOTES, _BOUNDS_OF_TEXT = rb"\"'", rb"\"',\t\r\n"


class WholeId:
    def __init__(self, wanted: str) -> None:
        plain = wanted.encode()
        coded = base64.b64encode(plain)
        narrow = {plain, json.dumps(wanted)[1:-1].encode(), coded, coded.rstrip(b"=")}
        little, big = (wanted.encode(f"utf-16-{order}") for order in ("le", "be"))
        self._wholes = frozenset((*narrow, little, big))
        self._quoted_in_base64 = _in_base64(b'"%b"' % plain)
        self._packed = msgspec.msgpack.encode(wanted)
        self._by_quotes, self._in_text = (
            _pattern(bounds, narrow, little, big) for bounds in (_QUOTES, _BOUNDS_OF_TEXT)
        )

    def is_in(self, value: object) -> bool:
        """A value of a column, or of JSON. Numbers and vectors hold no id."""
        match value:
            case str():
                return self.is_in(value.encode("utf-8", "surrogatepass"))
            case bytes() if value.startswith(MAGIC):
                return self._packed in (packed := _without_arrays(value)) or self._stands_in(packed, self._by_quotes)
            case bytes():
                return value in self._wholes or self._stands_in(value, self._by_quotes)
            case dict():
                return any(self.is_in(one) for pair in value.items() for one in pair)
            case list() | tuple():
                return any(map(self.is_in, value))
        return False

    def is_in_file(self, file: BinaryIO) -> bool:
        """Reads all of it in pieces. A file without a NUL in its first piece is a text file."""
        piece = file.read(PIECE_BYTES)
        pattern = self._by_quotes if b"\0" in piece else self._in_text
        overlap, kept = max(map(len, self._wholes)) + 4, b'"'  # with a bound of two bytes on both sides
        while piece:
            piece = kept + piece
            if self._stands_in(piece, pattern):
                return True
            kept, piece = piece[-overlap:], file.read(PIECE_BYTES)
        return self._stands_in(kept + b'"', pattern)

    def _stands_in(self, value: bytes, pattern: re.Pattern[bytes]) -> bool:
        if any(form in value for form in self._quoted_in_base64):
            return True
        return any(form in value for form in self._wholes) and pattern.search(value) is not None


def _pattern(bounds: bytes, narrow: Iterable[bytes], little: bytes, big: bytes) -> re.Pattern[bytes]:
    """The id between two of these characters; an escaped quotation mark ends it as well."""
    before, after = b"[%b]" % bounds, rb"[\\%b]" % bounds
    forms = [before + b"(?:%b)" % b"|".join(map(re.escape, sorted(narrow))) + b"(?=%b)" % after]
    forms += [
        before + b"\0" + re.escape(little) + b"(?=%b\0)" % after,
        b"\0" + before + re.escape(big) + b"(?=\0%b)" % after,
    ]
    return re.compile(b"|".join(forms))


def _in_base64(quoted: bytes) -> list[bytes]:
    """The characters that are certain to stand in the base64 of bytes with these, wherever they begin."""
    coded = ((before, base64.b64encode(b"\0" * before + quoted)) for before in range(3))
    certain = (one[-(-8 * before // 6) : 8 * (before + len(quoted)) // 6] for before, one in coded)
    return [one for one in certain if len(one) >= BASE64_CHARACTERS_MIN]


def _without_arrays(snapshot: bytes) -> bytes:
    """The texts and memories of a snapshot; of a damaged one, everything."""
    try:
        *texts, _ = msgspec.msgpack.decode(snapshot[BODY_FROM:])
    except (msgspec.DecodeError, TypeError, ValueError):
        return snapshot
    return msgspec.msgpack.encode(texts)
