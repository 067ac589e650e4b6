"""What the user asks of memory itself: to remember, to forget, or not to remember what is being said.

"Forget my address" deletes, so it is read narrowly: a sentence of the user's own that opens with the request and names
something of theirs. Dropping a matter ("forget it"), reminders ("don't forget the milk"), questions, quotations and
orders about rules are none. What is set aside for a while ("forget my diet for now") deletes nothing either. Never says
which memories are meant: `forgetting` does. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.learn.statements import intent_words as words
from memory.learn.statements.own_words import own_sentences
from memory.learn.statements.remembering import told_to_remember
from memory.learn.words.sentences import Sentence

IGNORE_CASE = re.IGNORECASE
TOPIC_CHARACTERS_MAX = 200  # a longer object tells a story rather than naming something


class IntentKind(StrEnum):
    REMEMBER = "remember"
    FORGET = "forget"
    WITHHOLD = "withhold"  # "off the record": what is said here is not to be learnt


class Reach(StrEnum):
    """How much a request is about."""

    TOPIC = "topic"  # what `topic` names
    PREVIOUS = "previous"  # what was said right before, in the turn before this one
    MESSAGE = "message"  # the message that the request stands in
    EVERYTHING = "everything"  # all that is known about the user
    NOTHING = "nothing"  # set aside for the task at hand, or with an exception that is not clear


@dataclass(frozen=True, slots=True)
class Intent:
    """`topic` is in the user's words, "" unless the reach is a topic; of REMEMBER it is the statement to keep.

    `spared`: what the request excepts, in the user's words, "" where nothing.
    """

    kind: IntentKind
    reach: Reach
    topic: str = ""
    spared: str = ""


def explicit_intent(text: str) -> Intent | None:
    """What the message asks of memory; forgetting goes before withholding, and that before remembering."""
    found = intents(text)
    for kind in (IntentKind.FORGET, IntentKind.WITHHOLD, IntentKind.REMEMBER):
        first = next((asked.intent for asked in found if asked.intent.kind is kind), None)
        if first is not None:
            return first
    return None


@dataclass(frozen=True, slots=True)
class Asked:
    """An intent and the sentence that says it: `message[start:end]`. `is_first`: no other sentence stands before it.

    `told_from`: from there to `end` it tells what holds now instead; `end` where it does not.
    """

    intent: Intent
    start: int
    end: int
    is_first: bool
    told_from: int


def intents(text: str) -> list[Asked]:
    """All of them, in the order said."""
    sentences = own_sentences(text)
    found = (
        (sentence, _intent_of(sentence, is_alone=len(sentences) == 1 and not sentence.precedes_foreign))
        for sentence in sentences
    )
    return [
        Asked(intent, s.start, s.end, s is sentences[0], s.start + _told_from(s.text))
        for s, intent in found
        if intent is not None
    ]


def _told_from(text: str) -> int:
    """Where a clause with the new value begins behind the order: "forget my old address, my new one is …"."""
    behind = _told_anew(text)
    return behind.end() if behind else len(text)


def _order_end(text: str) -> int:
    behind = _told_anew(text)
    return behind.start() if behind else len(text)


def _told_anew(text: str) -> re.Match[str] | None:
    """The joint before such a clause. What "and" joins to a clause of the order is to be forgotten, too."""
    behind = words.CLAUSE_BEHIND.search(text)
    if behind is None or not (words.TELLS_ANEW.search(text, behind.end()) and words.TELLS.search(text, behind.end())):
        return None
    is_joined = not behind.group().strip()
    return None if is_joined and words.ORDER_WITH_CLAUSE.search(text, 0, behind.start()) else behind


def _intent_of(sentence: Sentence, *, is_alone: bool) -> Intent | None:
    text = sentence.text.strip()
    return _forgetting(text) or _withholding(text, is_alone=is_alone) or _remembering(sentence)


def _remembering(sentence: Sentence) -> Intent | None:
    told = told_to_remember(sentence.text, is_marked_question=sentence.is_marked_question)
    return Intent(IntentKind.REMEMBER, Reach.TOPIC, told) if told else None


def _forgetting(text: str) -> Intent | None:
    """Limits in time and exceptions are taken out first, for either may stand anywhere in the order."""
    if words.RULES.search(text):
        return None
    order, is_limited = _without_limits(text[: _order_end(text)])
    excepted = words.EXCEPTED.search(order)
    if excepted is not None:
        order = f"{order[: excepted.start()]} {order[excepted.end() :]}".strip()
    intent = _forgetting_en(order) or _forgetting_de(order) or _forgetting_es(order) or _forgetting_zh(order)
    if is_limited and (intent is not None or words.SETS_ASIDE.match(order)):
        return Intent(IntentKind.FORGET, Reach.NOTHING)
    if intent is None:
        return None
    spared = _bare(next(filter(None, excepted.groups()), "")) if excepted else ""
    if words.BESIDE_THE_POINT.search(text) or len(spared) > TOPIC_CHARACTERS_MAX or (excepted and not spared):
        return Intent(IntentKind.FORGET, Reach.NOTHING)
    return replace(intent, spared=spared)


def _without_limits(text: str) -> tuple[str, bool]:
    """The order without "for now" and its like, and whether it had one; what a later clause limits is not the order."""
    behind = words.CLAUSE_BEHIND.search(text)
    end = behind.start() if behind else len(text)
    order = words.LIMITED.sub("", text[:end])
    if order == text[:end] or words.FOR_GOOD.search(text):
        return text, False
    return re.sub(r"\s+", " ", order + text[end:]).strip(" ,，"), True


def _bare(named: str) -> str:
    return re.sub(words.END, "", named, flags=IGNORE_CASE).strip(" .!?,;:…。！？，\"'“”")


def _forgetting_en(text: str) -> Intent | None:
    match = words.FORGET_EN.match(text)
    if match is None:
        return _no_longer_remembered(words.STOP_EN.match(text), words.EVERYTHING_EN, words.TOPIC_EN)
    named = match["object"]
    is_asked = re.search(r"\b(?:can|could|would|will) you\b", text[: match.start("verb")], IGNORE_CASE)
    if text.endswith("?") and not is_asked:
        return None
    is_order = not text.endswith("?") or "please" in text.casefold()
    if is_order and match["verb"].casefold() not in ("drop", "remove") and words.MY_DATA_EN.match(named):
        return Intent(IntentKind.FORGET, Reach.EVERYTHING)
    if match["verb"].casefold() != "forget" and not words.FROM_MEMORY_EN.search(named):
        return None  # "delete my file": not of memory
    if words.PREVIOUS_EN.match(named):
        return Intent(IntentKind.FORGET, Reach.PREVIOUS)
    if words.EVERYTHING_EN.match(named):
        return Intent(IntentKind.FORGET, Reach.EVERYTHING)
    is_dropped = re.match(r"about\s", named, IGNORE_CASE) and re.search(r"[,;:]|\s[-–—]\s", named)
    topic = words.TOPIC_EN.match(words.STORED_EN.sub("", named))
    if topic is None or is_dropped:
        return None
    return _of_topic(next(group for group in topic.groups() if group))


def _no_longer_remembered(
    match: re.Match[str] | None, everything: re.Pattern[str], topic: re.Pattern[str]
) -> Intent | None:
    """ "Stop remembering my diet". Of everything it may be meant for what is still to come, so that nothing goes."""
    named = match["object"] if match else ""
    found = None if everything.match(named) else topic.match(named)
    return _of_topic(next(group for group in found.groups() if group)) if found else None


def _of_topic(named: str) -> Intent | None:
    topic = _bare(words.OBJECT_END.sub("", re.sub(words.END, "", named, flags=IGNORE_CASE)))
    if not topic or len(topic) > TOPIC_CHARACTERS_MAX or words.OF_THE_TALK.match(topic):
        return None
    return Intent(IntentKind.FORGET, Reach.TOPIC, topic)


def _forgetting_de(text: str) -> Intent | None:
    match = words.FORGET_DE.match(text)
    if match is None:
        return None
    named = match["object"] or match["object_before"]
    verb = match["verb"] or match["verb_behind"]
    if text.endswith("?") and not match["verb_behind"]:
        return None
    return _of_reach(verb, named, words.EVERYTHING_DE, words.PREVIOUS_DE, words.TOPIC_DE)


def _forgetting_es(text: str) -> Intent | None:
    match = words.FORGET_ES.match(text)
    if match is None or (text.endswith("?") and not re.search(r"\b(?:puedes|podrías)\b", text, IGNORE_CASE)):
        return None
    return _of_reach(match["verb"], match["object"], words.EVERYTHING_ES, words.PREVIOUS_ES, words.TOPIC_ES)


def _of_reach(
    verb: str, named: str, everything: re.Pattern[str], previous: re.Pattern[str], topic: re.Pattern[str]
) -> Intent | None:
    if words.OTHER_VERBS.match(verb) and not words.MEMORY_DE_ES.search(named):
        return None
    if previous.match(named):
        return Intent(IntentKind.FORGET, Reach.PREVIOUS)
    if everything.match(named):
        return Intent(IntentKind.FORGET, Reach.EVERYTHING)
    match = topic.match(words.MEMORY_DE_ES.sub("", named))
    return _of_topic(next(group for group in match.groups() if group)) if match else None


def _forgetting_zh(text: str) -> Intent | None:
    match = words.FORGET_ZH.match(text)
    if match is None:
        return _no_longer_remembered(words.STOP_ZH.match(text), words.EVERYTHING_ZH, words.TOPIC_ZH)
    if words.DENIED_ZH.search(text):
        return None
    named = match["object_before"] or match["about"] or match["object"]
    if match["object"] is not None:
        is_polite = bool(match["polite"].strip("你，,好的那"))
        if (match["asks"] or named.endswith(("了吗", "吗", "了没", "了"))) and not re.search(
            "能|可以", match["polite"]
        ):
            return None
        if match["verb"] in ("忘了", "删了") and not (is_polite or named.endswith("吧")):
            return None  # without its subject it may tell what slipped the user's own mind
    named = re.sub("(?:吧|好吗|谢谢|可以吗|了|都|全部?|吗|[，,\\s])+$", "", named)
    named = re.sub("^(?:掉|有关|一下)", "", named)
    if words.PREVIOUS_ZH.match(named):
        return Intent(IntentKind.FORGET, Reach.PREVIOUS)
    if words.EVERYTHING_ZH.match(named):
        return Intent(IntentKind.FORGET, Reach.EVERYTHING)
    topic = words.TOPIC_ZH.match(named)
    return _of_topic(next(group for group in topic.groups() if group)) if topic else None


def _withholding(text: str, *, is_alone: bool) -> Intent | None:
    """A message that says nothing else speaks of what was said before it."""
    if text.endswith(("?", "？")):
        return None
    english = words.WITHHOLD_EN.match(text)
    other = words.WITHHOLD_DE.match(text) or words.WITHHOLD_ES.match(text) or words.WITHHOLD_ZH.match(text)
    if english is None and other is None:
        return None
    tells = any(english.groupdict().values()) if english else bool(other) and _tells_more(text)
    reach = Reach.PREVIOUS if is_alone and not tells else Reach.MESSAGE
    return Intent(IntentKind.WITHHOLD, reach)


def _tells_more(text: str) -> bool:
    """Whether something stands beside the request in the same sentence."""
    pieces = [piece for piece in words.CLAUSES.split(text) if sum(c.isalnum() for c in piece) >= 3]
    return len(pieces) > 1


__all__ = ["Asked", "Intent", "IntentKind", "Reach", "explicit_intent", "intents"]
