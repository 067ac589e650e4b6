"""Extraction without a model: the user's salient statements, sentence by sentence, as they were said.

A statement is never reworded. Two things may be put beside it so that it stands alone later: the meaning of a relative
date, after it, and the question that it answers, before it. Only a short answer to a question of well-known form makes
one sentence with it ("I live in Leeds"), and its evidence is the answer alone. What the assistant said is never a fact,
except a question about the user that the user barely confirms; that fact quotes the question and says so. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory.learn import labels, salience
from memory.learn.answering import AFFIRMED, as_statement, asks_of_the_talk, asks_what_lasts
from memory.learn.asides import asides
from memory.learn.dates import pinned
from memory.learn.facts import Fact
from memory.learn.intents import explicit_intent
from memory.learn.lexicon import ABOUT_THE_TALK, FIRST_PERSON, Language, language_of
from memory.learn.own_words import meant_sentences, meant_text, own_sentences
from memory.learn.remembering import asks_to_remember
from memory.learn.salience import Statement, Voice
from memory.learn.sentences import Sentence
from memory.learn.terms import terms
from memory.model import Evidence, Message, Role, Turn

QUESTION_CHARACTERS_MAX = 160  # a longer question of the assistant explains more than it asks
SHORT_WORDS_MAX = 3  # of a sentence that says little alone
SHORT_IDEOGRAPHS_MAX = 5
CONFIDENCE_CONFIRMED = 0.75
CONFIDENCE_BESIDE = 0.8
FACTS_OF_ONE_TURN_MAX = 40  # nobody tells more in one breath; the rest was pasted

YES = re.compile(
    r"\s*(?:yes|yep|yeah|yup|correct|right|exactly|indeed|true|i do|i am|i did|that['’]s right|ja|genau|stimmt|sí|"
    r"correcto|exacto|"
    r"对的?|是的?|没错|嗯|正确|有|有的)(?:[\s,]+(?:i do|i am|i did|that['’]s (?:right|correct)|exactly|correct|"
    r"indeed|对的?|是的?))?[\s.!。！]*$",
    re.IGNORECASE,
)
NO = re.compile(
    r"\s*(?:no|nope|nah|not (?:really|any ?more|at all)|i don['’]t|never|nein|nicht|nunca|不是|没有|不|没|"
    r"不会)[\s.!。！]*$",
    re.IGNORECASE,
)
_ABOUT_THE_USER = re.compile(
    r"\b(?:you|your|yours|du|dein\w*|dir|dich|sie|ihr\w*|ihnen|euch|euer|eure|tú|tu|tus|te|usted|su|tienes|eres|"
    r"vives|haces)\b|[你您]|"
    r"(?:right|correct)\?\s*$",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:want|would you (?:like|prefer|mind)|shall|should (?:i|we)|need (?:me|help|any)|can i|could i|may i|"
    r"interested in|like me to|care for|would it help|"
    r"make sense|ready to|any (?:other|more)|anything else|does that|soll(?:en|te)? (?:ich|wir)|möchte\w*|willst|"
    r"brauchst|"
    r"quieres|quiere|gustaría|lo paso|necesitas)\b|需要|要不要|要我|想要|是否|可以吗|好吗|行吗|用不用",
    re.IGNORECASE,
)
_HAS_DETAIL = re.compile(
    r"\d|[一二三四五六七八九十两]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|never|always|only|mostly|"
    r"every)\b",
    re.IGNORECASE,
)
_BEGINS_IN_THE_MIDDLE = re.compile(
    r"\s*(?:(?:in|at|on|for|since|about|around|roughly|mostly|mainly|usually|only|just|both|every|twice|once|with|near|"
    r"from|until|one|two|three|four|five|six|seven|eight|nine|ten|\d[\d.,]*|seit|bei|etwa|nur|desde|unos|unas|solo)\b"
    r"(?! of (?:my|our)\b)|[有没是叫在养用从](?!人)|大概|差不多|一般|每[天周月年次])",
    re.IGNORECASE,
)
# Words of a question that only asks whether something is so; what that is stands elsewhere: "Is that still right?"
_WHETHER = terms(
    "right correct correctly true still case sure exactly precise accurate okay fine good wrong mistaken mistake "
    "understand understood remember remembered remembering recall get got getting mean meant see say said told "
    "mention mentioned know think believe agree sound confirm named "
    "habe hast bist dich sie richtig stimmt stimmts wahr korrekt verstanden sicher oder nicht noch immer weißt meinst "
    "eres tienes correcto correcta verdad cierto entendido bien seguro seguros acuerdas sabes todavía"
)
_WHETHER_ZH = re.compile("[我你您说记理解得的没有这样那就是不对错正确吗吧呢么了还仍然懂明白清楚知道,，。?？\\s]+")
_LAST_QUESTION = re.compile(r"[^.!?。！？\n]*[?？](?=[^?？]{0,4}$)")


def extract(turns: Sequence[Turn], *, context: Sequence[Turn] = ()) -> list[Fact]:
    """The facts of `turns`, in the order said. `context`: earlier turns of the same session, oldest first.

    Context teaches nothing by itself; it tells what a bare "yes" answers and whether a part is being played.
    """
    facts: list[Fact] = []
    is_playing = any(opens_role_play(turn) for turn in context)
    previous = context[-1] if context else None
    for turn in turns:
        is_playing = is_playing or opens_role_play(turn)
        if not is_playing:
            facts.extend(_facts_of(turn, previous))
        previous = turn
    return facts


def opens_role_play(turn: Turn) -> bool:
    """Whether the user begins to play a part: from then on the session tells nothing about them."""
    return any(salience.opens_role_play(s) for m in user_messages(turn) for s in own_sentences(m.content))


def user_messages(turn: Turn) -> list[Message]:
    """What a person typed; tools speak in the same turn, too."""
    return [m for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]


def _facts_of(turn: Turn, previous: Turn | None) -> list[Fact]:
    facts: list[Fact] = []
    question = question_asked(previous)
    for index, message in enumerate(user_messages(turn)):
        asked = question if index == 0 else ""
        confirmed = _confirmation(message.content, asked, turn, previous)
        if confirmed:
            facts.append(confirmed)
        if confirmed or YES.match(message.content) or NO.match(message.content):
            continue
        facts.extend(_told(message.content, asked, turn, previous))
    return facts[:FACTS_OF_ONE_TURN_MAX]


def question_asked(turn: Turn | None) -> str:
    """The question about the user that the answer of `turn` ends with, or ""."""
    match = _LAST_QUESTION.search(turn.answer.rstrip()[-2_000:]) if turn else None
    question = match.group().strip() if match else ""
    if len(question) <= QUESTION_CHARACTERS_MAX and asks_what_lasts(question):
        return question
    is_fit = 0 < len(question) <= QUESTION_CHARACTERS_MAX and not _OFFER.search(question)
    is_about_user = _ABOUT_THE_USER.search(question) or question.endswith(("吗？", "吗?"))
    return question if is_fit and is_about_user and matter_asked(question) else ""


def matter_asked(question: str) -> frozenset[str]:
    """The terms of what a question asks about; none for one that says nothing by itself, such as "Is that right?"."""
    return frozenset() if _WHETHER_ZH.fullmatch(question) else terms(question) - _WHETHER


def _confirmation(reply: str, question: str, turn: Turn, previous: Turn | None) -> Fact | None:
    """A question of the assistant that the user's whole message confirms or denies."""
    if not question or previous is None or not (YES.match(reply) or NO.match(reply)):
        return None
    if re.match(
        r"\s*(?:how|what|why|where|when|which|who|怎么|什么|为什么|wie|was|qué|cómo)\b", question, re.IGNORECASE
    ):
        return None
    statement = Statement(f"{question} {reply.strip()}", language_of(question), Voice.THIRD_PERSON)
    category = labels.category_of(statement)
    return Fact(
        content=statement.text,
        evidence=Evidence(question, previous.id, Role.ASSISTANT),
        scope=turn.scope,
        said_at=turn.at,
        memory_type=labels.type_of(statement),
        category=category,
        confidence=CONFIDENCE_CONFIRMED,
        importance=labels.importance_of(statement, category),
    )


def told_sentences(message: str) -> list[Sentence]:
    """What the user said themselves and meant, cut so that each part says something."""
    return _joined(message, meant_sentences(message))


def _told(message: str, question: str, turn: Turn, previous: Turn | None) -> Iterator[Fact]:
    sentences = told_sentences(message)
    is_telling = _is_telling(message, sentences)
    said_before = [meant_text(one.content) for one in user_messages(previous)] if previous else []
    own = meant_text(message)
    for index, sentence in enumerate(sentences):
        before = [*said_before, own[: sentence.start]]
        found = salience.statements(sentence, is_telling=is_telling, before=before)
        asked = question if index == 0 else ""
        for statement in found:
            yield fact_of(statement, turn, question=asked if _leans_on_question(statement) else "")
        yield from _told_beside(sentence, found, turn)
        if asked and not found:
            yield from _replied(asked, sentence, turn)


def _replied(question: str, sentence: Sentence, turn: Turn) -> Iterator[Fact]:
    """What a sentence that is no statement by itself says in reply to a question."""
    answer = as_statement(question, sentence.text)
    if answer:
        yield _answered(answer, sentence, turn)
    elif _answers(sentence, question):
        said = Statement(sentence.text, language_of(sentence.text), Voice.THIRD_PERSON)
        yield fact_of(said, turn, question=question)


def _leans_on_question(statement: Statement) -> bool:
    """Whether it begins in the middle, as replies do: "since 2019, on the third floor", 有个三十二升的."""
    is_own = bool(FIRST_PERSON[statement.language].search(statement.text))
    return not is_own and statement.meant is None and bool(_BEGINS_IN_THE_MIDDLE.match(statement.text))


def _told_beside(sentence: Sentence, found: Sequence[Statement], turn: Turn) -> Iterator[Fact]:
    """What a question or a request tells of the user's own people, beyond the statements `found` in it."""
    for aside in asides(sentence.text):
        if any(aside.quote in one.text for one in found) or sentence.precedes_foreign:
            continue
        fact = fact_of(Statement(aside.text, language_of(aside.text), Voice.FIRST_PERSON), turn)
        yield replace(fact, evidence=Evidence(aside.quote, turn.id, Role.USER), confidence=CONFIDENCE_BESIDE)


def _answered(answer: str, sentence: Sentence, turn: Turn) -> Fact:
    """`answer`: what the sentence says together with the question; the words of the user alone are its evidence."""
    fact = fact_of(Statement(answer, language_of(answer), Voice.FIRST_PERSON), turn)
    evidence = Evidence(sentence.text, turn.id, Role.USER)
    return replace(fact, evidence=evidence, confidence=CONFIDENCE_CONFIRMED)


def _joined(message: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Sentences of a few words go with the one beside them: "We moved! I'm in Bristol now" is one statement."""
    joined: list[Sentence] = []
    for sentence in sentences:
        last = joined[-1] if joined else None
        if last and _belong_together(message, last, sentence):
            text = message[last.start : sentence.end]
            joined[-1] = Sentence(text, last.start, sentence.end, sentence.precedes_foreign)
        else:
            joined.append(sentence)
    return joined


def _belong_together(message: str, first: Sentence, second: Sentence) -> bool:
    is_close = "\n" not in message[first.end : second.start] and not first.precedes_foreign
    if not is_close or not (_is_short(first) or _is_short(second)):
        return False
    return all(
        salience.is_own_matter(s)
        and not salience.is_courtesy(s.text)
        and not asks_to_remember(s.text)
        and explicit_intent(s.text) is None
        and not ABOUT_THE_TALK.match(s.text)
        for s in (first, second)
    )


def _is_short(sentence: Sentence) -> bool:
    if language_of(sentence.text) == "zh":
        return len(sentence.text) <= SHORT_IDEOGRAPHS_MAX
    return len(sentence.text.split()) <= SHORT_WORDS_MAX


def _is_telling(message: str, sentences: Sequence[Sentence]) -> bool:
    """Whether others' names and numbers in the message are told on purpose: it says something in the first person, or
    asks and wants nothing at all."""
    if all(salience.is_own_matter(s) for s in sentences) and not any(s.precedes_foreign for s in sentences):
        return True
    return any(
        FIRST_PERSON[language_of(s.text)].search(s.text) and salience.statements(s, is_telling=False) for s in sentences
    )


def _answers(sentence: Sentence, question: str) -> bool:
    """Whether a sentence that is no statement by itself answers with something that is worth keeping."""
    affirmed = AFFIRMED.match(sentence.text)
    rest = sentence.text[affirmed.end() :] if affirmed else sentence.text
    language = language_of(rest)
    if salience.is_courtesy(rest) or salience.is_beside_the_point(rest):
        return False
    if salience.is_question(rest, language) or salience.is_request(rest, language):
        return False
    if _HAS_DETAIL.search(rest):
        return True
    return affirmed is not None and _says_more(rest, language) and not asks_of_the_talk(question)


def _says_more(text: str, language: Language) -> bool:
    return len(text.strip("。！.! ")) >= 2 if language == "zh" else len(text.split()) >= 2


def fact_of(statement: Statement, turn: Turn, *, question: str = "") -> Fact:
    """The statement in the user's words, with its labels, its dates pinned, and the question that it answers."""
    category = labels.category_of(statement)
    dates = "; ".join(f"{phrase}: {meaning}" for phrase, meaning in pinned(statement.text, turn.at))
    content = f"{question} {statement.text}" if question else statement.text
    for meant in filter(None, (statement.meant, statement.place)):
        content += f" ({meant.word}: {meant.stands_for})"
    return Fact(
        content=f"{content} ({dates})" if dates else content,
        evidence=Evidence(statement.text, turn.id, Role.USER),
        scope=turn.scope,
        said_at=turn.at,
        memory_type=labels.type_of(statement),
        category=category,
        confidence=labels.confidence_of(statement),
        importance=labels.importance_of(statement, category),
        subject=labels.subject_of(statement),
        is_explicit=statement.is_explicit,
    )
