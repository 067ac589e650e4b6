"""Byte positions of the parts of a JSON text, so that a few can be replaced and all others stay unchanged.

msgspec validates the text and skips values at the speed of C; a short pattern finds the keys between them. Offsets are
relative to the start of the text. Values are never re-serialised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # JSON text should not begin with it (RFC 8259), but most parsers accept it
MEMBERS_MAX = 10_000  # of one object; a name takes about 250 bytes of memory, and no legitimate request has so many

_QUOTE = ord('"')
_KEY = re.compile(rb'[{,\s]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:\s*+', re.DOTALL)
_GAP = re.compile(rb"[\[,\s]*+")
_EMPTY_LIST = re.compile(rb"\[\s*+\]")
_NO_NUMBER = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|NaN|Infinity', re.DOTALL)  # or a string, which may hold one
_HEX = b"[0-9a-fA-F]"
# An escaped surrogate after an even number of backslashes: a proper pair (kept), or a lone one.
_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*+)(?:(\\u[dD][89abAB]H{2}\\u[dD][c-fC-F]H{2})|\\u[dD][89a-fA-F]H{2})".replace(b"H", _HEX)
)


class NotJson(Exception):
    """The text cannot be handled. `reason`: a short metric label without any of the text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Member(NamedTuple):
    """One `"name": value` of an object. `start`: of the key's opening quote; `value` to `end`: the bytes of the
    value.
    """

    name: str
    start: int
    value: int
    end: int


class Splice(NamedTuple):
    """Replaces the bytes `start` to `end` by `text`; inserts it if both are equal."""

    start: int
    end: int
    text: bytes


class _Name:
    """A key that equals only itself, so that a dict keeps every occurrence of a repeated name, in order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Counted:
    """Creates the names for msgspec, and stops before too many members fill the memory."""

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
_STRING = msgspec.json.Decoder(str)
UNREADABLE = (msgspec.DecodeError, RecursionError)


def parsed(body: bytes) -> tuple[bytes, list[Member]]:
    """Parse the JSON object `body`: a text of the same length that msgspec can decode, and the object's members.

    JSON allows lone surrogates (`"\\ud800"`) and Python's parser accepts them, so the upstream may answer such a body;
    the same holds for `NaN` and `Infinity`, and for a byte order mark before the object. In the text, lone surrogates
    are replaced by U+FFFD, no-numbers by numbers, and the mark by three spaces; otherwise the text is `body` itself.
    Raises `NotJson`: not_utf8, not_json, not_an_object, too_deep, too_many_members.
    """
    text = well_formed(body)
    return text, members_of(text)


def well_formed(body: bytes) -> bytes:
    """`body`, or, if msgspec rejects its lone surrogates, no-numbers or byte order mark, a copy without them.

    The copy has the same length, so that offsets are valid in both.
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
        text = body
        if b"\\ud" in body or b"\\uD" in body:
            text = _SURROGATE.sub(lambda found: found[0] if found[2] else found[1] + b"\\ufffd", text)
        if b"NaN" in body or b"Infinity" in body:
            text = _NO_NUMBER.sub(lambda found: found[0] if found[0][0] == _QUOTE else b"1" * len(found[0]), text)
        if text == body:
            raise NotJson("not_json") from None
        return text
    return body


def members_of(text: bytes, start: int = 0, end: int | None = None) -> list[Member]:
    """All members of the object `text[start:end]`, in order, including repeated names.

    `text`: from `well_formed`. Raises `NotJson`: not_json, not_an_object, too_deep, too_many_members.
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
        return msgspec.json.decode(text, type=_Named, dec_hook=_Counted())  # noqa: TID251 - no type of ours is built
    except msgspec.ValidationError:
        raise NotJson("not_an_object") from None
    except msgspec.DecodeError:
        raise NotJson("not_json") from None
    except RecursionError:
        raise NotJson("too_deep") from None


def items_of(text: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Start and end of every item of the array `text[start:end]`, which was validated before."""
    spans: list[tuple[int, int]] = []
    position = start
    for raw in _ITEMS.decode(memoryview(text)[start:end]):
        found = _GAP.match(text, position)
        assert found is not None  # the pattern also matches the empty string
        position = found.end() + len(memoryview(raw))
        spans.append((found.end(), position))
    return spans


def value_of(text: bytes, member: Member) -> memoryview:
    return memoryview(text)[member.value : member.end]


def last_named(members: Sequence[Member], name: str) -> Member | None:
    """The member of that name; of repeated ones the last, as servers have it."""
    return next((member for member in reversed(members) if member.name == name), None)


def string_of(text: bytes, member: Member | None) -> str:
    """The member's string; "" if there is no member or it is not a string."""
    return "" if member is None or text[member.value] != _QUOTE else _STRING.decode(value_of(text, member))


def is_filled(text: bytes, member: Member | None) -> bool:
    """Whether a string or a list has any content."""
    return bool(string_of(text, member)) or is_filled_list(text, member)


def is_filled_list(text: bytes, member: Member | None) -> bool:
    return member is not None and text[member.value] == ord("[") and not _EMPTY_LIST.match(text, member.value)


def removals(members: Sequence[Member], names: Collection[str]) -> list[Splice]:
    """Splices that remove every member with one of these names, each with one comma and adjacent white space."""
    kept = [index for index, member in enumerate(members) if member.name not in names]
    if len(kept) == len(members):
        return []
    if not kept:
        return [Splice(members[0].start, members[-1].end, b"")]
    edits = [
        Splice(member.start, members[index + 1].start, b"")
        for index, member in enumerate(members[: kept[-1]])
        if member.name in names
    ]
    if kept[-1] + 1 < len(members):
        edits.append(Splice(members[kept[-1]].end, members[-1].end, b""))
    return edits


def edited(body: bytes, edits: Sequence[Splice]) -> bytes:
    """`body` with the splices applied; at equal positions in the order given. They must not overlap."""
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
