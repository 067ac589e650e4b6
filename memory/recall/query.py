"""Stage 7: what to look for. Turns a conversation into one `Query`; calls nothing and nobody.

A question that stands on its own is taken as it is. A vague one ("How much?", "And the other one?") borrows the words
of the user's previous message, because that is where its subject is.
"""

from __future__ import annotations

import re

from memory.model import Conversation, Query, Role

QUERY_CHARACTERS_MAX = 900  # the embedding model reads 256 tokens; a longer message keeps its head and its tail
HEAD_CHARACTERS = 250  # people put the question last and its subject first
SUBJECT_CHARACTERS_MAX = 600  # of an earlier message that a vague one leans on
VAGUE_WORDS_MAX = 3  # with fewer words of its own, a question leans on what was said before

_WORDS = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have how i if in is it its me much many my of on "
    "one or other s so that the them then there these they this those to was were what when where which who whom "
    "whose why will with would you your can could should about again also just more please tell und der die das "
    "ist wie was wann wo wer mein meine y el la los las es que como cuando donde quien mi mis de".split()
)


def build_query(conversation: Conversation) -> Query:
    """The last user message, with the one before it where the last is vague."""
    questions = [m.content.strip() for m in conversation.messages if m.role == Role.USER and m.content.strip()]
    if not questions:
        return Query(text="")
    text = questions[-1]
    if len(questions) > 1 and is_vague(text):
        text = f"{_shortened(questions[-2], SUBJECT_CHARACTERS_MAX)} {text}"
    return Query(text=_shortened(text, QUERY_CHARACTERS_MAX))


def is_vague(text: str) -> bool:
    """Whether so few words of the text mean something that it cannot be searched for alone.

    In scripts without spaces, about two characters make a word.
    """
    unspaced = len(_UNSPACED.findall(text))
    words = [w for w in _WORDS.findall(_UNSPACED.sub(" ", text).casefold()) if w not in _FUNCTION_WORDS]
    return len(words) + unspaced / 2 < VAGUE_WORDS_MAX


def _shortened(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    return f"{text[:HEAD_CHARACTERS]} {text[-(characters_max - HEAD_CHARACTERS) :]}"
