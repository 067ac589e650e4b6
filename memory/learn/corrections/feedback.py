"""What the user says about what they were told: that it is right, or that it is wrong, and what is right instead.

Only memories that an answer restated are touched, and only answers of the last few exchanges are looked at. A bare
"yes" adds no evidence: it raises confidence and nothing else. A correction that names the new value makes a memory of
it; one that does not only lowers confidence. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.learn.changes.renaming import tells_name, wrong_name
from memory.learn.facts import Fact
from memory.learn.statements.own_words import own_sentences
from memory.learn.statements.replies import NO, YES, matter_asked, question_asked
from memory.learn.triggers import is_correction
from memory.learn.words.clauses import without_pinned_dates
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of
from memory.model import Evidence, Memory, Role, Scope, Trust, Turn, TurnStatus

USER_MESSAGES_MAX = 6  # back to which a correction may reach
RESTATED_SHARE_MIN = 0.6  # of a memory's words that a sentence of the answer has to hold
RESTATED_SHARE_MIN_ZH = 0.5  # pairs of characters break where pronouns stand
RAISED_STEP = 0.3  # of what is missing to certainty
CONFIDENCE_SURE = 0.99  # nothing to be gained past it: a thousand times "yes" write nothing
LOWERED_FACTOR = 0.5
CONFIDENCE_MIN = 0.2  # however often it is denied: who really means it says what is so, and that supersedes
STEM_CHARACTERS = 4
TAIL_CHARACTERS_MAX = 2_000  # of an answer, where its last question stands
NEW_VALUE_WORDS_MAX = 4
NEW_VALUE_IDEOGRAPHS_MAX = 8

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_CONFIRMS = re.compile(
    r"\s*(?:(?:yes|yep|yeah|oh|wow|ja|sí|对|嗯|是的?)[,，.!！\s]*)?"
    r"(?:exactly|that['’]?s (?:right|correct|true|exactly right)|(?:absolutely |totally |perfectly |quite )?"
    r"(?:right|correct|true)|spot on|precisely|you(?:['’]re| are) right|"
    r"genau|(?:das )?stimmt(?: genau)?|(?:ganz )?richtig|exacto|exactamente|(?:es )?correcto|así es|eso es|"
    r"(?:完全|非常)?正确|没错|对的|说得对|(?:你)?(?:记|说)对了|完全对|就是这样)[\s,，.!！。]*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
_NEW_VALUE = re.compile(
    r"\s*(?:(?:no|nope|wrong|sorry|actually|that(?:['’]s| is) (?:wrong|not (?:right|correct))|nein|"
    r"das stimmt nicht|falsch|"
    r"no es así|incorrecto|不对|不是|错了|你?(?:说|记)错了)[\s,.!;:，。！；：-]+)+"
    r"(?:it(?:['’]s| is)|that(?:['’]s| is)|es ist|das ist|es|是|应该是|应该)\s*"
    r"(?P<value>[^,;.!?，；。！？]+)[.!。！\s]*$",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"\s*(?:(?:so|and|ah|ok(?:ay)?|well)[,\s]+)*(?:(?:if )?i (?:remember|recall|know|believe|think|understand|see)"
    r"(?: (?:correctly|rightly|right))?(?: that)?[,\s]+|as you (?:said|told me|mentioned)[,\s]+|"
    r"you (?:said|told me|mentioned)(?: that)?\s+|soweit ich weiß[,\s]+|"
    r"(?:我)?记得|据我所知[，,]?|您?你?(?:说过|提到过?)[，,]?)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[,，\s]*(?:right|correct|yes|no|(?:is|are|do|does|has|have)n['’]t (?:it|he|she|they|you|that)|"
    r"is (?:that|this) (?:still )?(?:right|correct|so|true)|oder|stimmt['’]?s|nicht wahr|verdad|no es así|"
    r"对吗|对吧|对不对|是吗|是吧|没错吧|没记错吧|(?:还)?是这样吗)\s*[?？]*\s*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_VALUE_ZH = re.compile("(?<=[叫是在姓住])(?:在)?(?P<value>[\u3400-\u9fff]{1,8})[。！]?$")


class Opinion(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Feedback:
    """`said`: the user's own sentence, word for word. `answers`: what it may be about, the latest first.

    `question`: the only thing that a bare no denies, or "".
    """

    opinion: Opinion
    turn_id: str
    scope: Scope
    at: float
    said: str
    answers: tuple[str, ...]
    question: str = ""


def feedback_of(turns: Sequence[Turn], *, context: Sequence[Turn] = ()) -> list[Feedback]:
    """What `turns` say about the answers before them, in the order said. `context`: earlier turns, oldest first.

    Turns that failed or were aborted may be among both: they say nothing, but a bare yes or no right behind one is none
    to the answer before it. What an aborted one had answered can be corrected like any other: the user saw it.
    """
    found: list[Feedback] = []
    earlier = list(context)
    for turn in turns:
        answers = tuple(reversed(_answers_within_reach(earlier)))
        sentence = "" if is_broken(turn) else _first_sentence(turn)
        if answers and sentence:
            asked = None if is_broken(earlier[-1]) else earlier[-1]
            latest = asked.answer if asked else ""
            opinion = _opinion(sentence, turn, asked)
            if opinion is not None:
                reach = answers if is_correction(sentence) else (latest,)
                denied = question_asked(asked) if NO.match(sentence) else ""
                found.append(Feedback(opinion, turn.id, turn.scope, turn.at, sentence, reach, denied))
        earlier.append(turn)
    return found


def is_broken(turn: Turn) -> bool:
    """Whether its reply never reached its end: what was said there teaches nothing."""
    return turn.status in (TurnStatus.FAILED, TurnStatus.ABORTED)


def confirms(text: str) -> bool:
    """Whether the sentence says nothing but that it is so."""
    return bool(_CONFIRMS.match(text))


def about(feedback: Feedback, memories: Iterable[Memory]) -> list[Memory]:
    """The memories that the latest answer which restated any of them restated."""
    active = [m for m in memories if m.said_at <= feedback.at and _may_be_meant(feedback.said, m)]
    if feedback.question:
        return [memory for memory in active if _asks_whether(feedback.question, memory)]
    for answer in feedback.answers:
        sentences = _sentences(answer)
        found = [memory for memory in active if any(_restates(sentence, memory.content) for sentence in sentences)]
        if found:
            return found
    return []


def spoken_of(feedback: Feedback) -> list[str]:
    """The sentences that restate the memories that it is about, if any does; those of the latest answer first."""
    if feedback.question:
        return [feedback.question]
    return [sentence for answer in feedback.answers for sentence in _sentences(answer)]


def _sentences(answer: str) -> list[str]:
    return [match.group() for match in _SENTENCE.finditer(answer)]


def _asks_whether(question: str, memory: Memory) -> bool:
    """Not "did you like the vegetarian menu?", once the memory says that they are a vegetarian."""
    return _restates(question, memory.content) and asks_after(question, [memory])


def asks_after(question: str, memories: Sequence[Memory]) -> bool:
    """ "I remember that you live in Leeds, right?": whether the assistant only asks what these memories say.

    All that it asks has to stand in one of them, or in those that it restates together.
    """
    bare = _TAG.sub("", _LEAD_IN.sub("", question))
    asked = matter_asked(bare)
    if any(_is_said_by(asked, bare, [memory]) for memory in memories):
        return True
    return _is_said_by(asked, bare, [memory for memory in memories if _restates(bare, memory.content)])


def _is_said_by(asked: frozenset[str], question: str, memories: Sequence[Memory]) -> bool:
    """Names and numbers as they are; verbs, which change their ending, by their stem: "wohnst" and "wohne"."""
    known = frozenset().union(*(terms(memory.content) for memory in memories))
    opening = terms(question.split(maxsplit=1)[0]) if question.strip() else frozenset()  # has its capital from there
    names = frozenset().union(*map(terms, names_of(question))) - opening
    missing = asked - known
    inflected = _of_one_stem(missing - names, known) | {word for word in missing if f"{word}o" in known}  # vives, vivo
    return missing <= inflected


def raised(memory: Memory, *, now: float) -> Memory | None:
    """None where it is as sure as can be."""
    if memory.confidence >= CONFIDENCE_SURE:
        return None
    return replace(memory, confidence=memory.confidence + (1.0 - memory.confidence) * RAISED_STEP, updated_at=now)


def lowered(memory: Memory, *, now: float) -> Memory:
    floor = min(memory.confidence, CONFIDENCE_MIN)
    return replace(memory, confidence=max(floor, memory.confidence * LOWERED_FACTOR), updated_at=now)


def is_about(fact: Fact, wrong: Memory) -> bool:
    """Whether what is said instead is of the matter that was wrong: it shares a word with it besides the value."""
    return _may_be_meant(fact.content, wrong) and bool(terms(fact.content) & terms(without_pinned_dates(wrong.content)))


def _may_be_meant(said: str, memory: Memory) -> bool:
    """Not by "her name is Mira, not Mia", once the memory says where Mia lives."""
    misnamed = wrong_name(said)
    return not misnamed or tells_name(memory.content, misnamed)


def said_instead(feedback: Feedback, wrong: Memory) -> Fact | None:
    """ "No, it's Miso" of "My cat is called Tom": the memory with that value put right; None where that is unsure."""
    match = _NEW_VALUE.match(feedback.said)
    if match is None:
        return None
    value = match["value"].strip(" \"'“”‘’")
    known = without_pinned_dates(wrong.content)
    is_short = len(value) <= NEW_VALUE_IDEOGRAPHS_MAX if _IDEOGRAPH.search(value) else _is_few_words(value)
    content = _with_value(known, value) if value and is_short else ""
    if not content or content == known:
        return None
    return Fact(
        content=content,
        evidence=Evidence(feedback.said, feedback.turn_id, Role.USER),
        scope=feedback.scope,
        said_at=feedback.at,
        memory_type=wrong.memory_type,
        category="correction",
        importance=wrong.importance,
        subject=wrong.subject,
        trust=Trust.EXPLICIT,
    )


def _is_few_words(value: str) -> bool:
    return len(value.split()) <= NEW_VALUE_WORDS_MAX


def _with_value(known: str, value: str) -> str:
    """The statement with the value in the place of its only number, or name; "" where there is not just one."""
    if _NUMBER.search(value):
        numbers = list(_NUMBER.finditer(known))
        new = _NUMBER.search(value)
        return _replaced(known, numbers[0].span(), new.group()) if new and len(numbers) == 1 else ""
    if _IDEOGRAPH.search(known):
        match = _VALUE_ZH.search(known)
        return _replaced(known, match.span("value"), value) if match else ""
    names = names_of(known)
    if len(names) != 1 or not value[:1].isupper():
        return ""
    found = list(re.finditer(rf"(?<!\w){re.escape(next(iter(names)))}(?!\w)", known, re.IGNORECASE))
    return _replaced(known, found[0].span(), value) if len(found) == 1 else ""


def _replaced(text: str, span: tuple[int, int], value: str) -> str:
    return text[: span[0]] + value + text[span[1] :]


def _opinion(sentence: str, turn: Turn, asked: Turn | None) -> Opinion | None:
    """`asked`: the turn right before it, if its answer was seen whole."""
    answer = asked.answer.rstrip() if asked else ""
    if (confirms(sentence) and answer) or (answer.endswith(("?", "？")) and YES.match(sentence)):
        return Opinion.RIGHT
    if answer.endswith(("?", "？")) and NO.match(sentence):
        return Opinion.WRONG if _asks_what_is_so(asked) else None
    return Opinion.WRONG if any(is_correction(text) for text in _own_messages(turn)[:1]) else None


def _asks_what_is_so(asked: Turn | None) -> bool:
    """ "Shall I …?" asks what to do; "is that right?" alone asks after what was said before it."""
    if asked is None or question_asked(asked):
        return asked is not None
    sentences = _SENTENCE.findall(asked.answer[-TAIL_CHARACTERS_MAX:])
    return bool(sentences) and not matter_asked(sentences[-1])


def _own_messages(turn: Turn) -> list[str]:
    return [m.content for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]


def _first_sentence(turn: Turn) -> str:
    messages = _own_messages(turn)
    sentences = own_sentences(messages[0]) if messages else []
    if not sentences:
        return ""
    end = sentences[1].end if len(sentences) > 1 and _is_bare_no(sentences[0].text) else sentences[0].end
    return messages[0][sentences[0].start : end]


def _is_bare_no(text: str) -> bool:
    """ "That's wrong. It's Miso." is one correction in two sentences."""
    return is_correction(text) and len(text) < 30


def _answers_within_reach(earlier: Sequence[Turn]) -> list[str]:
    found: list[str] = []
    messages = 0
    for turn in reversed(earlier):
        if messages >= USER_MESSAGES_MAX:
            break
        messages += max(1, len(_own_messages(turn)))
        found.append("" if turn.status is TurnStatus.FAILED else turn.answer)
    return [answer for answer in reversed(found) if answer.strip()]


def _restates(sentence: str, content: str) -> bool:
    known = terms(without_pinned_dates(content))
    shared = known & terms(sentence) | _of_one_stem(known, terms(sentence))
    enough = RESTATED_SHARE_MIN_ZH if _IDEOGRAPH.search(content) else RESTATED_SHARE_MIN
    is_named = names_of(content) <= names_of(sentence) if not _IDEOGRAPH.search(content) else True
    return is_named and len(shared) >= min(2, len(known)) > 0 and len(shared) >= enough * len(known)


def _of_one_stem(known: Iterable[str], said: Iterable[str]) -> frozenset[str]:
    """ "Wohne" and "wohnst": verbs change their ending with the person who speaks."""
    stems = {word[:STEM_CHARACTERS] for word in said if _is_long_word(word)}
    return frozenset(word for word in known if _is_long_word(word) and word[:STEM_CHARACTERS] in stems)


def _is_long_word(word: str) -> bool:
    return len(word) >= STEM_CHARACTERS and word.isalpha()  # "$10,000" and "$10,900" have no stem in common


__all__ = [
    "Feedback",
    "Opinion",
    "about",
    "asks_after",
    "confirms",
    "feedback_of",
    "is_about",
    "is_broken",
    "lowered",
    "raised",
    "said_instead",
]
