"""Inserts notes for APIs in which they are no messages of their own: at the head of the text of a user's message, or at
the end of the instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.chat.completions import TEXT_PARTS, ChatRequest, quoted
from memory.chat.json_spans import Member, NotJson, Splice, is_filled, items_of, last_named, members_of, string_of

BLANK_LINE = "\n\n"

Span = tuple[int, int]


def into_message(
    text: bytes, message: Span, note: str, *, part_type: bytes, is_passed_over: Callable[[Span], bool] = lambda _: False
) -> Splice:
    """`message`: an object, or a string. The note goes into the first part if that is text, so that the prompt equals
    that of a string; else before it, as a part of `part_type`. `is_passed_over`: parts that stay ahead of it.
    """
    if text[message[0]] == ord('"'):
        return prefixed(message[0], note)
    members = members_of(text, *message)
    content = last_named(members, "content")
    if content is None:
        end = members[-1].end
        return Splice(end, end, b',"content":' + quoted(note))
    if text[content.value] == ord('"'):
        return prefixed(content.value, note)
    if text[content.value] != ord("["):  # null
        return Splice(content.value, content.end, quoted(note))
    parts = items_of(text, content.value, content.end)
    following = next((part for part in parts if not is_passed_over(part)), None)
    if following is not None and (said := text_of_part(text, following)) is not None:
        return prefixed(said.value, note)
    part = b'{"type":"%s","text":' % part_type + quoted(note) + b"}"
    if following is not None:
        return Splice(following[0], following[0], part + b",")
    inside = content.end - 1
    return Splice(inside, inside, (b"," if parts else b"") + part)


def text_of_part(text: bytes, part: Span) -> Member | None:
    """The text of a part, in quotes; None if it is a part of another kind."""
    try:
        members = members_of(text, *part)
    except NotJson:  # a bare string, or too many members
        return None
    said = last_named(members, "text")
    is_text = string_of(text, last_named(members, "type")) in TEXT_PARTS
    return said if is_text and said is not None and text[said.value] == ord('"') else None


def prefixed(quote: int, note: str) -> Splice:
    """Inserts the note and a blank line right after the opening quote of a string."""
    return Splice(quote + 1, quote + 1, quoted(note + BLANK_LINE)[1:-1])


def into_member(request: ChatRequest, name: str, addition: str, *, beside: str) -> Splice:
    """Appends to a string or blocks of the body, replaces null or what is empty, or adds the member before `beside`."""
    text, member, other = request.text, request.member(name), request.member(beside)
    assert other is not None, "a conversation has it"
    if member is None:
        return Splice(other.start, other.start, b'"%s":' % name.encode() + quoted(addition) + b",")
    if not is_filled(text, member):
        return Splice(member.value, member.end, quoted(addition))
    inside = member.end - 1
    following = quoted(BLANK_LINE + addition)  # servers join blocks without a gap
    if text[member.value] == ord('"'):
        return Splice(inside, inside, following[1:-1])
    return Splice(inside, inside, b',{"type":"text","text":' + following + b"}")
