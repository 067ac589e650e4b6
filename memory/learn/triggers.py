"""A look at one finished turn: is it to be learnt at once, does it leave the topic, what would be lost without it?

Cheap rules, meant to err on the side of learning too early: they only say when, and what goes first when there is too
much; what is learnt, extraction and gate decide. Never says that a turn is not to be learnt. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.learn.statements import salience, verbatim
from memory.learn.statements.intents import explicit_intent
from memory.learn.statements.own_words import own_sentences
from memory.learn.words.lexicon import language_of
from memory.model import Message, Role, Turn, Urgency

MESSAGES_MAX = 8  # looked at of one turn, the last ones
CHARACTERS_MAX = 4_000  # of a message, from its beginning; a longer one was pasted for the most part
SENTENCES_MAX = 12  # of a message, in which a correction is looked for
TOPIC_CHARACTERS_MAX = 500  # what a short question's vector can be compared with
TOPIC_WORDS_MIN = 5  # fewer say too little of a topic: "and how much is that?"
TOPIC_IDEOGRAPHS_MIN = 8

WORTH_SMALL_TALK = 0.0
WORTH_QUESTION = 0.1  # says what somebody wants, seldom who they are
WORTH_TEXT = 0.2  # neither asks nor tells by our rules; a model may find more in it
WORTH_LONG_TEXT = 0.3  # the same at length
WORTH_STATEMENT = 0.5  # something that verbatim learning would keep; the rest up to 1 is its importance
LONG_TEXT_CHARACTERS = 300

_CORRECTION = re.compile(
    r"\s*(?:(?:sorry|no+|nope|hm+|wait|oh|hey|actually|but|well)[,.!\s]+)*"
    r"(?:that(?:['’]s| is| was)(?: just| simply| all)? (?:wrong|not (?:right|correct|true|what i said)|incorrect|"
    r"a mistake|outdated)\b|"
    r"(?:you|you['’]ve) (?:got|have|had|remember(?:ed)?) (?:that|it|this|me|my \w+) wrong|you(?:['’]re| are) (?:wrong|"
    r"mistaken|confusing)\b|"
    r"(?:wrong|incorrect|correction)\b\s*[:,.!-]|i (?:meant|misspoke|made a mistake|was wrong)\b|"
    r"i never said\b)|"
    r"\s*(?:no|nope|nah|actually)[,.!:]*\s+(?:it|it['’]s|its|that['’]s|i|i['’](?:m|ve)|my|we|our|he|she|they|the|not)\b|"
    r"\s*(?:nein[,.!\s]+)?(?:das (?:stimmt|ist) (?:so )?(?:nicht|falsch)|falsch\b|korrektur\b|ich meinte\b|"
    r"du (?:irrst|verwechselst))|\s*nein[,.!]\s*(?:es|ich|das|mein|wir|sie|er)\b|"
    r"\s*(?:no[,.!\s]+)?(?:eso (?:no es|está mal|es falso)|no es (?:así|cierto|correcto)|te equivocas|incorrecto\b|"
    r"me equivoqué|corrección\b|quise decir)|\s*no[,.!]\s*(?:es|mi|yo|en realidad|soy|tengo|vivo)\b|"
    r"\s*(?:不对|不是的|错了|你?(?:说|记|搞|弄|理解)错了?|更正|纠正|应该是|其实(?:我|是|不是)|不是[^，。？?]{1,20}[，,](?:而)?是|"
    r"我说的(?:是|不是)|我(?:刚才)?(?:说|写|打)错)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}|\d+")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


def examine(
    turn: Turn, earlier: Sequence[Turn] = (), *, likeness: float | None = None, drift_similarity: float = 0.0
) -> Urgency:
    """`earlier`: the turns of the session right before it, as far as they are not learnt.

    `likeness`: the greatest cosine of its `topic_text` to one of theirs, None where there is nothing to compare; below
    `drift_similarity` the turn speaks of something else. 0 means that topics do not count.
    """
    messages = said_by_the_user(turn)
    texts = [message.content for message in messages]
    has_left_topic = likeness is not None and drift_similarity > 0 and likeness < drift_similarity
    asks_memory = any(explicit_intent(text) is not None for text in texts)
    return Urgency(
        worth=_worth(replace(turn, messages=messages), earlier),
        is_explicit=asks_memory or any(is_correction(text) for text in texts),
        asks_memory=asks_memory,
        ends_topic=bool(earlier) and has_left_topic,
    )


def said_by_the_user(turn: Turn) -> tuple[Message, ...]:
    """The user's own messages, cut to what is looked at."""
    own = [m for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]
    return tuple(replace(m, content=m.content[:CHARACTERS_MAX]) for m in own[-MESSAGES_MAX:])


def topic_text(turn: Turn) -> str:
    """What the turn is about, in the user's words; "" where they say too little to tell."""
    text = " ".join(sentence.text for message in said_by_the_user(turn) for sentence in own_sentences(message.content))[
        :TOPIC_CHARACTERS_MAX
    ]
    if salience.is_courtesy(text):
        return ""
    words = len({word.casefold() for word in _WORD.findall(text)})
    is_enough = words >= TOPIC_WORDS_MIN or len(_IDEOGRAPH.findall(text)) >= TOPIC_IDEOGRAPHS_MIN
    return text if is_enough else ""


def is_correction(text: str) -> bool:
    """Whether a sentence of the user's own says that something is not as it was said, or as the assistant has it."""
    return any(
        _CORRECTION.match(sentence.text) and not sentence.text.rstrip().endswith(("?", "？"))
        for sentence in own_sentences(text)[:SENTENCES_MAX]
    )


def _worth(turn: Turn, earlier: Sequence[Turn]) -> float:
    """0..1, without a model: what verbatim learning would make of it, else by its kind and length."""
    facts = verbatim.extract([turn], context=earlier)
    if facts:
        return min(1.0, WORTH_STATEMENT + (1 - WORTH_STATEMENT) * max(fact.importance for fact in facts))
    sentences = [sentence.text for message in turn.messages for sentence in own_sentences(message.content)]
    telling = [text for text in sentences if not salience.is_courtesy(text)]
    if not telling:
        return WORTH_SMALL_TALK
    if all(salience.is_question(text, language_of(text)) for text in telling):
        return WORTH_QUESTION
    return WORTH_LONG_TEXT if sum(map(len, telling)) >= LONG_TEXT_CHARACTERS else WORTH_TEXT
