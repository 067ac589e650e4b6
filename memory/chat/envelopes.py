"""The user's own words in what clients send in their name: without the client's wrapping, and without others' words.

Agents wrap what was typed (`<user_query>…</user_query>`), first or last in a message, and add text of their own
(`<system-reminder>…`), each element on lines of its own; a client's own tasks (titles, tags, follow-up questions of a
chat) hold nothing that the user said. Found pages stand before the question, so that nothing in them is taken for the
user's. An element that never closes is the user's own text. In a group chat each message has the `name` of who wrote
it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory.model import Conversation, Message, Role

OWN = ("user_query", "task", "userRequest", "user_message", "user_input", "feedback", "answer")
NOT_OWN = tuple(
    "system-reminder local-command-stdout local-command-stderr local-command-caveat ide_opened_file ide_selection "
    "additional_data attached_files system_reminder user_info project_layout git_status rules "
    "open_and_recently_viewed_files agent_skills agent_transcripts environment_details environment_context "
    "user_instructions environment_info workspace_info userMemory sessionMemory repoMemory attachments editorContext "
    "repoContext reminderInstructions".split()
)
# How Open WebUI begins a task, of its own or of the user's beside found pages, and what it gives along.
TASK, CHAT, PAGES = "### Task:", "chat_history", "context"
TASKS = (  # further ones of its own, without an element, and what Codex says first
    "# AGENTS.md instructions",
    f"{TASK}\nSummarize the conversation history that will be compacted out of",
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models to the latest user query",
)
TOOL_CHOICE = "Your task is to choose and return the correct tool(s) from the list of available tools"  # in `system`
CONTEXT, REQUEST = ("# Context from my IDE", "# Files mentioned by the user"), "\n## My request for Codex:\n"
TOOL_SAYS = "] Result:"  # ends the first line of what a tool of Cline's says
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
        first = conversation.messages[0]
        is_choice = first.role == Role.SYSTEM and TOOL_CHOICE in first.content
        messages = tuple(self._opened(one, is_choice=is_choice) for one in conversation.messages)
        if all(one is other for one, other in zip(messages, conversation.messages, strict=True)):
            return conversation
        is_of_client = not messages[-1].content and messages[-1] is not conversation.messages[-1]
        return replace(conversation, messages=messages, is_of_client=is_of_client)

    def _opened(self, message: Message, *, is_choice: bool) -> Message:
        if message.role != Role.USER or message.is_tool_traffic:
            return message
        own = "" if is_choice else self.own_words(message.content)
        return message if own is message.content else replace(message, content=own)

    def own_words(self, text: str) -> str:
        """The same object if there is nothing to leave out."""
        if (asked := _asked(text.lstrip())) is not None:
            return self.own_words(asked)
        if "</" not in text and TOOL_SAYS not in text:
            return text
        rest = text
        for _ in range(ELEMENTS_MAX):
            found = next((span for name in self.not_own if (span := _element(rest, name))), None)
            if found is None:
                break
            rest = rest[: found[0]] + rest[found[1] :]
        bare = rest.strip()
        is_of_tool = bare.startswith("[") and bare.partition("\n")[0].endswith(TOOL_SAYS)
        for name in self.own:
            begin, end = f"<{name}>", f"</{name}>"
            if bare.endswith(end) and begin in bare and (is_of_tool or bare.startswith("<")):
                return bare.removesuffix(end).rpartition(begin)[2].strip()
            if bare.startswith(begin) and f"{end}\n" in bare:
                return bare.removeprefix(begin).partition(f"{end}\n")[0].strip()
        if is_of_tool:
            return ""
        return text if rest is text else bare


KNOWN = Envelopes()


def of_speaker(conversation: Conversation, user_id: str) -> Conversation:
    """In a group chat, where user messages are of several names, none being one: without the words of others.

    The user is who has the user's id for a name; where nobody has it, who has no name, if the last message is theirs.
    """
    names = [message.name.casefold() for message in conversation.messages if message.role == Role.USER]
    if len(set(names)) < 2:
        return conversation
    own = user_id.casefold()
    speaker = own if own in names or names[-1] else ""
    messages = tuple(
        replace(one, content="") if one.role == Role.USER and one.name.casefold() != speaker else one
        for one in conversation.messages
    )
    return replace(conversation, messages=messages)


def _asked(task: str) -> str | None:
    """What the user asks in this task, "" in one of the client's own; None if it is no client's.

    Templates put the question behind the pages, and those that quote it there are followed by it once more.
    """
    if task.startswith(TASKS):
        return ""
    if task.startswith(CONTEXT) and REQUEST in task:
        return task.rpartition(REQUEST)[2].strip()
    if not task.startswith(TASK):
        return None
    if f"<{CHAT}>" in task.partition(f"<{PAGES}>")[0] and f"</{CHAT}>" in task:
        return ""
    _, pages, asked = task.rpartition(f"</{PAGES}>")
    return (asked.rpartition(f"</{OWN[0]}>")[2].strip() or asked.strip()) if pages else None


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
