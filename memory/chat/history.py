"""Where a resent history may be cut, and the edit that leaves its beginning out.

A cut stands before a user message. It never separates a tool call from its result, and nothing is left out that text
cannot replace: images, files, and items of kinds that we do not know. System messages are the client's instructions and
stay, wherever they stand. Works for every `ApiShape`; pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from memory.chat.api_shape import SYSTEM_ROLES
from memory.chat.completions import TOOL_ROLES, ChatRequest
from memory.chat.json_spans import UNREADABLE, Splice
from memory.chat.token_estimate import PARTS_BESIDES_TEXT
from memory.model import CompactedHistory, Role

_TALK = (Role.USER, Role.ASSISTANT, *TOOL_ROLES)
_OPAQUE_KINDS = ("item_reference", "compaction")  # they stand for content that only the server has


class _Named(msgspec.Struct, gc=False):
    id: str | None = None


class _WirePart(msgspec.Struct, gc=False):
    """What ties a message, an item or a block to others, in all APIs."""

    type: str | None = None
    id: str | None = None
    tool_calls: list[_Named] | None = None
    tool_call_id: str | None = None
    call_id: str | None = None
    approval_request_id: str | None = None
    function_call: msgspec.Raw | None = None
    tool_use_id: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")


_PARTS = msgspec.json.Decoder(list[_WirePart])
_PART = msgspec.json.Decoder(_WirePart)


@dataclass(slots=True)
class _Pairs:
    """The tool calls of a history: where each was made, and where it was last answered."""

    made: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)


def clean_cuts(request: ChatRequest) -> frozenset[int]:
    """The indexes of user messages before which this history may be cut. Parses all messages.

    Empty for a conversation whose earlier part the server stores: there is nothing to leave out.
    """
    conversation = request.conversation
    if conversation is None or request.chain.held_under:
        return frozenset()
    pairs, opaque_from = _Pairs(), len(conversation.messages)
    for index, (start, end) in enumerate(request.shape.spans(request)):
        message, sent = conversation.messages[index], request.text[start:end]
        if message.role in SYSTEM_ROLES:
            continue
        parts = _parts(sent)
        for part in parts:
            _tie(pairs, part, index)
        is_opaque = not parts or message.role not in _TALK or parts[0].type in _OPAQUE_KINDS
        if is_opaque or any(kind in sent for kind in PARTS_BESIDES_TEXT):
            opaque_from = min(opaque_from, index)
    bounds = [(at, pairs.answered.get(name, len(conversation.messages))) for name, at in pairs.made.items()]
    orphans = [at for name, at in pairs.answered.items() if name not in pairs.made]
    return frozenset(
        index
        for index, message in enumerate(conversation.messages)
        if message.role == Role.USER
        and 0 < index <= opaque_from
        and not any(made < index <= last for made, last in bounds)
        and not any(at >= index for at in orphans)
    )


def deletions(request: ChatRequest, compacted: CompactedHistory) -> list[Splice]:
    """Splices that remove the messages before `end`, except system messages, each run with the comma after it."""
    assert request.conversation is not None
    messages, spans = request.conversation.messages, request.shape.spans(request)
    edits: list[Splice] = []
    first: int | None = None
    for index in range(compacted.end + 1):
        is_left_out = index < compacted.end and messages[index].role not in SYSTEM_ROLES
        if is_left_out and first is None:
            first = index
        elif not is_left_out and first is not None:
            edits.append(Splice(spans[first][0], spans[index][0], b""))
            first = None
    return edits


def _tie(pairs: _Pairs, part: _WirePart, index: int) -> None:
    for call in part.tool_calls or ():
        pairs.made[call.id or f"#{index}"] = index
    if part.function_call is not None:
        pairs.made[f"#{index}"] = index
        pairs.answered[f"#{index}"] = index + 1  # answered by the next message, without an id
    if part.tool_call_id is not None:
        pairs.answered[part.tool_call_id] = index
    kind = part.type or ""
    if part.call_id is not None:
        (pairs.answered if kind.endswith("_output") else pairs.made)[part.call_id] = index
    if part.tool_use_id is not None:
        pairs.answered[part.tool_use_id] = index
    elif (kind == "mcp_approval_request" or kind.endswith("tool_use")) and part.id is not None:
        pairs.made[part.id] = index
    if part.approval_request_id is not None:
        pairs.answered[part.approval_request_id] = index


def _parts(sent: bytes) -> list[_WirePart]:
    """A message or item, and the blocks of a message that have to do with tools; none if it cannot be read."""
    if sent.startswith(b'"'):  # `input` or `instructions` as a string
        return [_WirePart()]
    try:
        part = _PART.decode(sent)
        content = bytes(part.content)
        has_blocks = content.startswith(b"[") and b"tool_use" in content
        return [part, *(_PARTS.decode(content) if has_blocks else ())]
    except UNREADABLE:
        return []


def is_clean(request: ChatRequest, cut: int) -> bool:
    """Whether this history may be cut there. Parses nothing if no tool result follows the cut."""
    assert request.conversation is not None
    has_tools_later = any(message.is_tool_traffic for message in request.conversation.messages[cut:])
    return not has_tools_later or cut in clean_cuts(request)
