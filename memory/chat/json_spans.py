"""Where the parts of a JSON text stand, in bytes, so that a few of them can change while all others stay as they were.

msgspec checks the whole text and skips values at the speed of C; a small pattern finds the keys between them. Offsets
count from the start of the text. This module must never write a value anew that it was not asked to write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # JSON text should not begin with it (RFC 8259), but most parsers let it pass
MEMBERS_MAX = 10_000  # of one object; a name costs some 250 bytes of memory, and no honest request has so many

_KEY = re.compile(rb'[{,\s]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:\s*+', re.DOTALL)
_GAP = re.compile(rb"[\[,\s]*+")
_HEX = b"[0-9a-fA-F]"
# An escaped surrogate: after an even number of backslashes, a proper pair (kept), or half of one.
_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*+)(?:(\\u[dD][89abAB]H{2}\\u[dD][c-fC-F]H{2})|\\u[dD][89a-fA-F]H{2})".replace(b"H", _HEX)
)


class NotJson(Exception):
    """The text cannot be handled. `reason` is a short label, fit for a metric; it never holds any of the text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Member(NamedTuple):
    """One `"name": value` of an object. `start` is the key's quote, `value` to `end` the bytes of the value."""

    name: str
    start: int
    value: int
    end: int


class Edit(NamedTuple):
    """Put `text` in the place of the bytes `start` to `end`; where those are equal, it is inserted."""

    start: int
    end: int
    text: bytes


class _Name:
    """A key that equals only itself: so a dict keeps every occurrence of a repeated name, in order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Counted:
    """Makes names for msgspec, and stops it before a flood of members fills the memory."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MEMBERS_MAX

    def __call__(self, _wanted: type, text: str) -> _Name:
        self.left -= 1
        if self.left < 0:
            raise NotJson("too_many_members")
        return _Name(text)


_Named = dict[_Name, msgspec.Raw]
_SKIP = msgspec.json.Decoder(msgspec.Raw)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def parsed(body: bytes) -> tuple[bytes, list[Member]]:
    """Read the object that `body` is: a text of the same length that msgspec can decode, and the object's members.

    JSON allows `"\\ud800"`, half of a surrogate pair, and Python's own parser takes it, so such a body may well be
    answered; the same goes for a byte order mark before the object. In the text those halves read U+FFFD and the mark
    is three spaces; in any other case the text is `body` itself. Raises `NotJson`: not_utf8, not_json, not_an_object,
    too_deep, too_many_members.
    """
    text = well_formed(body)
    return text, members_of(text)


def well_formed(body: bytes) -> bytes:
    """`body`, or where msgspec refuses it for halves of surrogate pairs or a byte order mark, a copy without them.

    The copy has the same length, so that what stands where in the one stands there in the other.
    """
    if body.startswith(BYTE_ORDER_MARK):
        body = b" " * len(BYTE_ORDER_MARK) + body[len(BYTE_ORDER_MARK) :]
    try:
        if not body.isascii():
            body.decode()
        _SKIP.decode(body)
    except UnicodeDecodeError:
        raise NotJson("not_utf8") from None
    except RecursionError:
        raise NotJson("too_deep") from None
    except msgspec.DecodeError:
        if b"\\ud" not in body and b"\\uD" not in body:
            raise NotJson("not_json") from None
        return _SURROGATE.sub(lambda found: found[0] if found[2] else found[1] + b"\\ufffd", body)
    return body


def members_of(text: bytes, start: int = 0, end: int | None = None) -> list[Member]:
    """All members of the object that `text[start:end]` is, in order, repeated names included.

    `text` as `well_formed` gave it. Raises `NotJson`: not_json, not_an_object, too_deep, too_many_members.
    """
    members: list[Member] = []
    position = start
    for name, raw in _decoded(memoryview(text)[start:end]).items():
        found = _KEY.match(text, position)
        assert found is not None  # msgspec has read this key
        position = found.end() + len(memoryview(raw))
        members.append(Member(name.text, found.start(1), found.end(), position))
    return members


def _decoded(text: memoryview) -> _Named:
    try:
        return msgspec.json.decode(text, type=_Named, dec_hook=_Counted())
    except msgspec.ValidationError:
        raise NotJson("not_an_object") from None
    except msgspec.DecodeError:
        raise NotJson("not_json") from None
    except RecursionError:
        raise NotJson("too_deep") from None


def items_of(text: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Start and end of every item of the array that `text[start:end]` is; the array has been checked before."""
    spans: list[tuple[int, int]] = []
    position = start
    for raw in _ITEMS.decode(memoryview(text)[start:end]):
        found = _GAP.match(text, position)
        assert found is not None  # the pattern matches nothing, too
        position = found.end() + len(memoryview(raw))
        spans.append((found.end(), position))
    return spans


def value_of(text: bytes, member: Member) -> memoryview:
    """The bytes of a member's value."""
    return memoryview(text)[member.value : member.end]


def removals(members: Sequence[Member], names: Collection[str]) -> list[Edit]:
    """Edits that take every member with one of these names out, each with one comma and the white space beside it."""
    kept = [index for index, member in enumerate(members) if member.name not in names]
    if len(kept) == len(members):
        return []
    if not kept:
        return [Edit(members[0].start, members[-1].end, b"")]
    edits = [
        Edit(member.start, members[index + 1].start, b"")
        for index, member in enumerate(members[: kept[-1]])
        if member.name in names
    ]
    if kept[-1] + 1 < len(members):
        edits.append(Edit(members[kept[-1]].end, members[-1].end, b""))
    return edits


def edited(body: bytes, edits: Sequence[Edit]) -> bytes:
    """`body` with the edits applied; at equal places in the order given. They must not overlap."""
    if not edits:
        return body
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    position = 0
    for start, end, text in sorted(edits, key=lambda edit: edit.start):
        assert start >= position
        pieces += (view[position:start], text)
        position = end
    pieces.append(view[position:])
    return b"".join(pieces)
