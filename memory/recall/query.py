"""Stage 7: turns a conversation into one `Query`. Pure.

A question that stands on its own is used as it is. A vague one ("How much?", "And the other one?") is extended with
topic words of what it refers to: the user's earlier messages, back to the latest one that names a topic, and the
assistant's question where the user only agreed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory.language.small_talk import is_pleasantry
from memory.model import Conversation, Message, Query, Role
from memory.recall.ranking.lexical import STOP_CHARACTERS, UNSPACED, terms

# The embedding model reads 256 tokens; of a longer message we keep the beginning and the end.
QUERY_CHARACTERS_MAX = 900
HEAD_CHARACTERS = 250  # people name the subject first and ask last
TOPIC_CHARACTERS_MAX = 400  # of the end of an earlier message, searched for topic words
TOPIC_WORDS_MAX = 16  # of one earlier message: more would outweigh the question itself
VAGUE_WORDS_MAX = 3  # a question with fewer words of its own refers to what was said before
EARLIER_MAX = 3  # earlier user messages that a vague question may refer to

_WORDS = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_PIECES = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[._'’:/-][^\W_{UNSPACED}]+)*")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have how i if in is it its me much many my of on "
    "one or other s so us we he him his she her hers our ours ones t that the them then there these they this "
    "those to was were what when where which who whom whose why will with would you your can could should about "
    "again also just more please tell und der die das ist wie was wann wo wer mein meine y el la los las es que "
    "como cuando donde quien mi mis de".split()
)


def build_query(conversation: Conversation) -> Query:
    """The last user message, extended with topic words of earlier messages if it is vague."""
    asked = _last_question(conversation.messages)
    if asked is None:
        return Query(text="")
    text = conversation.messages[asked].content.strip()
    if is_vague(text):
        text = " ".join([*_topics_before(conversation.messages[:asked]), text])
    return Query(text=_shortened(text, QUERY_CHARACTERS_MAX))


def is_vague(text: str) -> bool:
    """Whether the text has too few content words to be searched for on its own.

    In scripts without spaces, about two characters make a word. Of a long text the beginning and the end decide.
    """
    text = _shortened(text, QUERY_CHARACTERS_MAX)
    unspaced = len(_UNSPACED.findall(text))
    words = [w for w in _WORDS.findall(_UNSPACED.sub(" ", text).casefold()) if w not in _FUNCTION_WORDS]
    return len(words) + unspaced / 2 < VAGUE_WORDS_MAX


def topic_words(text: str) -> list[str]:
    """The content words of a text, each once, in order; if there are many, the latest.

    In a script without spaces these are runs of characters, without the characters that only have a grammatical role.
    """
    found: dict[str, None] = {}
    for piece in _PIECES.findall(text[-TOPIC_CHARACTERS_MAX:]):
        word = piece.strip("".join(STOP_CHARACTERS)) if _UNSPACED.match(piece) else piece
        if word and terms(word):
            found.setdefault(word)
    return list(found)[-TOPIC_WORDS_MAX:]


def _last_question(messages: Sequence[Message]) -> int | None:
    return next((i for i in reversed(range(len(messages))) if _says_something(messages[i], Role.USER)), None)


def _says_something(message: Message, role: Role) -> bool:
    return message.role == role and bool(message.content) and not message.content.isspace()


def _topics_before(messages: Sequence[Message]) -> list[str]:
    """Topic words of earlier messages, oldest first, back to the latest user message that is not vague."""
    topics: list[list[str]] = []
    seen = 0
    agrees = True  # the last question refers to the assistant's last words, as an agreement does
    for message in reversed(messages):
        if _says_something(message, Role.ASSISTANT) and not message.is_tool_traffic and agrees:
            topics.append(_asked_about(message.content))
            agrees = False
        if not _says_something(message, Role.USER):
            continue
        seen += 1
        text = message.content.strip()
        agrees = is_pleasantry(text)
        if not agrees:
            topics.append(topic_words(text))
        if seen == EARLIER_MAX or not (agrees or is_vague(text)):
            break
    return [word for words in reversed(topics) for word in words]


def _asked_about(answer: str) -> list[str]:
    """Topic words of the assistant's last one or two sentences; none if there are too many to be one topic."""
    sentences = re.split(r"(?<=[.!?。！？])\s*", answer.strip()[-TOPIC_CHARACTERS_MAX:])
    return topic_words(" ".join([s for s in sentences if s][-1:]))


def _shortened(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    return f"{text[:HEAD_CHARACTERS]} {text[-(characters_max - HEAD_CHARACTERS) :]}"
