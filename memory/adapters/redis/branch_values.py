"""The position of a turn in its conversation as a value, and the entries by which it is found. Pure.

All entries of a user are members of one sorted set, in the order of their bytes. Each begins with what it is found by;
the place and the id of the turn follow, so that those of one kind are in the order of recording.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

_SEPARATOR = "\x1f"  # in no id, and in no key
_PLACE_DIGITS = 16


class PlacedTurn(msgspec.Struct, frozen=True):
    """`position`: in the order of recording. `is_seen`: its beginning was observed, not only sent again.

    `is_concurrent`: active beside the path of its tree, because it was being answered when its sibling came. `reached`:
    how far an abandoned turn was learnt ("", "window", "learnt"). `is_settled` False: the memories do not show
    `is_abandoned` yet.
    """

    position: int
    turn_id: str
    session_id: str
    key: str
    tree_id: str
    parent_id: str = ""
    is_seen: bool = True
    is_abandoned: bool = False
    is_concurrent: bool = False
    reached: str = ""
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """Entries that begin alike."""

    words: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return _SEPARATOR.join((*self.words, ""))

    def entry(self, node: PlacedTurn) -> str:
        return f"{self.prefix}{node.position:0{_PLACE_DIGITS}d}{_SEPARATOR}{node.turn_id}"

    def turn_id(self, entry: bytes) -> str:
        return entry.decode()[len(self.prefix) + _PLACE_DIGITS + 1 :]


def of_key(key: str, session_id: str = "") -> Kind:
    """Turns with the same prefix of a conversation, in that session or in any."""
    return Kind(("k", key)) if not session_id else Kind(("s", session_id, key))


def after(tree_id: str, parent_id: str) -> Kind:
    """Turns that continue that one."""
    return Kind(("c", tree_id, parent_id))


def active(tree_id: str) -> Kind:
    """Turns of a tree that are not abandoned."""
    return Kind(("a", tree_id))


def beside(tree_id: str) -> Kind:
    """Concurrent turns of a tree."""
    return Kind(("b", tree_id))


UNSETTLED = Kind(("n",))
NOT_LEARNT = Kind(("u",))  # abandoned turns that are not to be learnt unless they are resumed


def left_out(key: str) -> str:
    """The entry of an exchange of which nothing may be recorded; it is no turn."""
    return Kind(("x", key)).prefix


def entries_of(node: PlacedTurn) -> frozenset[str]:
    kinds = [of_key(node.key), of_key(node.key, node.session_id)]
    if node.parent_id:
        kinds.append(after(node.tree_id, node.parent_id))
    if not node.is_abandoned:
        kinds.append(active(node.tree_id))
    elif node.reached != "learnt":
        kinds.append(NOT_LEARNT)
    if node.is_concurrent:
        kinds.append(beside(node.tree_id))
    if not node.is_settled:
        kinds.append(UNSETTLED)
    return frozenset(kind.entry(node) for kind in kinds)


def encode(node: PlacedTurn) -> bytes:
    return _ENCODER.encode(node)


def decode(stored: bytes) -> PlacedTurn:
    return _DECODER.decode(stored)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(PlacedTurn)
