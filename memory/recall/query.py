"""Stage 7: what to look for. Turns a conversation into one `Query`; calls nothing and nobody.

A question that stands on its own is taken as it is. A vague one ("How much?", "And the other one?") borrows the words
of what it leans on: the user's earlier messages, back past thanks and other vague ones to the one that names something,
and what the assistant asked where the user only agreed. Of those it takes the words that carry a topic, not the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory.language.small_talk import is_pleasantry
from memory.model import Conversation, Message, Query, Role
from memory.recall.ranking.lexical import STOP_CHARACTERS, UNSPACED, terms

QUERY_CHARACTERS_MAX = 900  # the embedding model reads 256 tokens; a longer message keeps its head and its tail
HEAD_CHARACTERS = 250  # people put the question last and its subject first
TOPIC_CHARACTERS_MAX = 400  # of an earlier message in which topic words are looked for, from its end
TOPIC_WORDS_MAX = 16  # of one earlier message: more would drown the question
VAGUE_WORDS_MAX = 3  # with fewer words of its own, a question leans on what was said before
EARLIER_MAX = 3  # of the user's messages that a vague question may lean on

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
    """The last user message, with the topics that it leans on where it is vague."""
    asked = _last_question(conversation.messages)
    if asked is None:
        return Query(text="")
    text = conversation.messages[asked].content.strip()
    if is_vague(text):
        text = " ".join([*_topics_before(conversation.messages[:asked]), text])
    return Query(text=_shortened(text, QUERY_CHARACTERS_MAX))


def is_vague(text: str) -> bool:
    """Whether so few words of the text mean something that it cannot be searched for alone.

    In scripts without spaces, about two characters make a word.
    """
    unspaced = len(_UNSPACED.findall(text))
    words = [w for w in _WORDS.findall(_UNSPACED.sub(" ", text).casefold()) if w not in _FUNCTION_WORDS]
    return len(words) + unspaced / 2 < VAGUE_WORDS_MAX


def topic_words(text: str) -> list[str]:
    """The words of a text that carry a topic, each once, in order; the latest where there are many.

    A script without spaces gives its runs of characters, without those that only build sentences around them.
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
    """Topic words, oldest first, back to a message of the user's that is not vague itself."""
    topics: list[list[str]] = []
    seen = 0
    agrees = True  # the last question follows the assistant's last words as agreement does
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
    """Topics of the assistant's last sentence or two, where they are few enough to be what it speaks of."""
    sentences = re.split(r"(?<=[.!?。！？])\s*", answer.strip()[-TOPIC_CHARACTERS_MAX:])
    return topic_words(" ".join([s for s in sentences if s][-1:]))


def _shortened(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    return f"{text[:HEAD_CHARACTERS]} {text[-(characters_max - HEAD_CHARACTERS) :]}"
