"""Chooses a session's most salient sentences, in the user's own words. Pure.

What a sentence means was decided by the reader, in its claims; what it is worth, by the valuation of compaction. Here a
statement that the reader claims is worth more, not less, since a summary should say what the conversation was about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from memory.chat.exchanges import Exchange
from memory.chat.hidden_text import hides_text
from memory.chat.plain_lines import on_one_line
from memory.language import content_words, is_asked
from memory.language.small_talk import is_pleasantry
from memory.model import Act, Claim, Role, StateItemKind, Turn, statement_key
from memory.ports import Tokens
from memory.sessions.compaction.sentences import Sentences, segment_of, shortened, specifics_of

TOKENS_MAX = 80  # of title and text
TITLE_CHARACTERS_MAX = 60
CLAIMED, CHOSEN = 0.3, 0.2  # more for a statement that the reader claims, for a decision
QUESTION = 0.35  # the user's questions say what was talked about, statements more so
SPECIFIC = 0.05  # more for each name or number of a question
PLANTED_MIN = 0.5  # confidence from which a turn is left out: a summary outlives its conversation
REQUEST_MIN = 0.7  # the same for requests, as learning obeys them
TITLE_WORDS_MIN = 2  # content words of a sentence that is preferred as the title
OF_TURN_MAX = 8  # statements of a turn that are considered; a summary has room for about six in all
JOINT = " · "

_UNWANTED = {Act.INSTRUCT: PLANTED_MIN, Act.FORGET: REQUEST_MIN, Act.WITHHOLD: REQUEST_MIN}


@dataclass(frozen=True, slots=True)
class SummaryText:
    """`turn_ids`: the turns that the words come from, oldest first."""

    title: str
    text: str
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """`turn`: index of its turn. `place`: in the turn."""

    text: str
    worth: float
    turn: int
    place: int


def of_one_scope(turns: Sequence[Turn]) -> list[Turn]:
    """Those of the last turn's project and agent: a summary belongs to one of each."""
    last = turns[-1].scope if turns else None
    return [turn for turn in turns if last and turn.scope == last]


def wanted_turns(turns: Sequence[Turn], claims: Sequence[Claim]) -> list[Turn]:
    """Without turns with planted instructions or hidden text, or with a request to forget or to withhold."""
    unwanted = {c.evidence.turn_id for c in claims if c.act in _UNWANTED and c.confidence >= _UNWANTED[c.act]}
    return [turn for turn in turns if turn.id not in unwanted and not any(map(hides_text, user_messages(turn)))]


def has_substance(turn: Turn) -> bool:
    """Whether the user said more than a greeting or an acknowledgement."""
    return any(map(_says_something, user_messages(turn)))


def salient_text(
    turns: Sequence[Turn], claims: Sequence[Claim], *, sentences: Sentences, tokens: Tokens
) -> SummaryText | None:
    """None if the user said nothing that could stand in a summary. Each turn gives its best before any gives two."""
    title, of_title = _title(turns, sentences)
    found = _distinct(
        [one for index, turn in enumerate(turns) for one in _statements(index, turn, claims, sentences)], title
    )
    if not title:
        return None
    chosen: list[_Statement] = []
    left = TOKENS_MAX - tokens(title)
    for statement in _by_turns(found):
        cost = tokens(JOINT + statement.text)
        if cost <= left:
            chosen.append(statement)
            left -= cost
    in_order = sorted(chosen, key=lambda one: (one.turn, one.place))
    used = sorted({of_title, *(one.turn for one in in_order)})
    text = JOINT.join(one.text for one in in_order)
    return SummaryText(title, text, tuple(turns[index].id for index in used))


def user_messages(turn: Turn) -> list[str]:
    """Of the user, with text."""
    said = (m.content for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic)
    return [content for content in said if content.strip()]


def _title(turns: Sequence[Turn], sentences: Sentences) -> tuple[str, int]:
    """The first sentence with a few words of content, else the first with any; and the index of its turn."""
    first = ("", 0)
    for index, turn in enumerate(turns):
        for sentence in filter(_says_something, (one for said in user_messages(turn) for one in sentences(said))):
            found = on_one_line(shortened(sentence, TITLE_CHARACTERS_MAX)), index
            if len(content_words(sentence)) >= TITLE_WORDS_MIN:
                return found
            first = first if first[0] else found
    return first


def _says_something(text: str) -> bool:
    return not is_pleasantry(text) and bool(content_words(text))


def _statements(index: int, turn: Turn, claims: Sequence[Claim], sentences: Sentences) -> Iterator[_Statement]:
    said = tuple(message for message in turn.messages if message.role == Role.USER)
    own = [claim for claim in claims if claim.evidence.turn_id == turn.id]
    place = 0
    for item in segment_of([Exchange(said, "")], own, {}, sentences).items:
        if not _says_something(item.text):
            continue
        more = (CLAIMED if item.is_needed else 0.0) + (CHOSEN if item.kind is StateItemKind.DECISION else 0.0)
        yield _Statement(on_one_line(item.text), item.score + more, index, place)
        place += 1
    questions = (one for message in user_messages(turn) for one in sentences(message) if is_asked(one))
    for question in filter(_says_something, questions):
        worth = QUESTION + SPECIFIC * specifics_of(question).weight
        yield _Statement(on_one_line(shortened(question)), worth, index, place)
        place += 1


def _distinct(statements: Collection[_Statement], title: str) -> list[_Statement]:
    """Each statement once, where it was said last; none that the title repeats."""
    latest = {statement_key(one.text): one for one in statements}
    latest.pop(statement_key(title), None)
    return list(latest.values())


def _by_turns(statements: Sequence[_Statement]) -> list[_Statement]:
    """The best of each turn, those of the highest worth first; then the second best of each; a few of each turn."""
    of_turns: dict[int, list[_Statement]] = {}
    for statement in sorted(statements, key=lambda one: (-one.worth, one.place)):
        of_turns.setdefault(statement.turn, []).append(statement)
    ranked = [(rank, one) for of_turn in of_turns.values() for rank, one in enumerate(of_turn[:OF_TURN_MAX])]
    return [one for _, one in sorted(ranked, key=lambda each: (each[0], -each[1].worth, -each[1].turn))]
