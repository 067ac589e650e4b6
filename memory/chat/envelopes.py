"""The user's own words in what clients send in their name: without the client's wrapping, and without others' words.

Agents wrap what was typed (`<user_query>…</user_query>`) and add text of their own (`<system-reminder>…`), each element
on lines of its own; a client's own tasks (titles, tags, follow-up questions of a chat) hold nothing that the user said.
An element that never closes is the user's own text. In a group chat each message has the `name` of who wrote it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory.model import Conversation, Message, Role

OWN = ("user_query", "task", "userRequest", "user_message", "user_input", "feedback", "answer")
NOT_OWN = (
    "system-reminder",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "environment_details",
    "environment_context",
    "user_instructions",
    "additional_data",
    "attached_files",
    "workspace_info",
    "editorContext",
    "reminderInstructions",
)
TASK, CHAT = "### Task:", "<chat_history>"  # how Open WebUI begins a task of its own, and what it gives along
ELEMENTS_MAX = 100  # of a message; more are text


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Names of elements: around the user's own words, and around words of the client."""

    own: tuple[str, ...] = OWN
    not_own: tuple[str, ...] = NOT_OWN

    @classmethod
    def parsed(cls, names: Iterable[str]) -> Envelopes:
        """The known ones and these: `NAME` is around the user's words, `-NAME` around the client's."""
        listed = list(names)
        added = {name.removeprefix("-") for name in listed}
        own = (*(one for one in OWN if one not in added), *(one for one in listed if not one.startswith("-")))
        not_own = (*(one for one in NOT_OWN if one not in added), *(one[1:] for one in listed if one.startswith("-")))
        return cls(own, not_own)

    def opened(self, conversation: Conversation) -> Conversation:
        """The conversation with the user's own words; the same object if nothing is wrapped."""
        messages = tuple(map(self._opened, conversation.messages))
        is_changed = any(one is not other for one, other in zip(messages, conversation.messages, strict=True))
        return replace(conversation, messages=messages) if is_changed else conversation

    def _opened(self, message: Message) -> Message:
        text = message.content
        if message.role != Role.USER or "</" not in text or message.is_tool_traffic:
            return message
        own = self.own_words(text)
        return message if own is text else replace(message, content=own)

    def own_words(self, text: str) -> str:
        """The same object if there is nothing to leave out."""
        if text.lstrip().startswith(TASK):  # with a question beside found pages, or about the chat
            if any(f"</{one}>" in text for one in self.own):
                return _last_inside(text, self.own)
            return "" if CHAT in text else text
        rest = text
        for _ in range(ELEMENTS_MAX):
            found = next((span for name in self.not_own if (span := _element(rest, name))), None)
            if found is None:
                break
            rest = rest[: found[0]] + rest[found[1] :]
        inside: list[str] = []
        bare = rest.strip()
        while name := next((one for one in self.own if bare.startswith(f"<{one}>")), ""):
            said, close, after = bare[len(name) + 2 :].partition(f"</{name}>")
            if not close:
                break
            inside.append(said.strip())
            bare = after.strip()
        if inside and not bare:
            return "\n\n".join(inside)
        return text if rest is text else rest.strip()


KNOWN = Envelopes()


def of_speaker(conversation: Conversation, user_id: str) -> Conversation:
    """In a group chat, where user messages have several names: without the words of others than this user."""
    names = {message.name for message in conversation.messages if message.role == Role.USER and message.name}
    if len(names) < 2:
        return conversation
    own = user_id.casefold()
    messages = tuple(
        replace(one, content="") if one.role == Role.USER and one.name and one.name.casefold() != own else one
        for one in conversation.messages
    )
    return replace(conversation, messages=messages)


def _element(text: str, name: str) -> tuple[int, int] | None:
    """The first element of that name that begins and ends a line; attributes are not looked at."""
    at = text.find(f"<{name}>")
    while at >= 0:
        end = text.find(f"</{name}>", at)
        if end < 0:
            return None
        end += len(name) + 3
        if not text[:at].rpartition("\n")[2].strip() and not text[end:].partition("\n")[0].strip():
            return at, end
        at = text.find(f"<{name}>", end)
    return None


def _last_inside(text: str, names: Iterable[str]) -> str:
    """What the last element of these names holds: one that stands in a found page comes before."""
    closes, name = max((text.rfind(f"</{one}>"), one) for one in names)
    opens = text.rfind(f"<{name}>", 0, closes)
    return text[opens + len(name) + 2 : closes].strip() if opens >= 0 else text
