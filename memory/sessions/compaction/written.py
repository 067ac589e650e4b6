"""A segment of conversation as a model writes it: what it is given, and what of its answer is used.

An entry is used if it says nothing that its sentences do not say. It takes the place of those extracted sentences whose
names, numbers and references it repeats; all others stay, so that a model can make a state shorter, but not poorer.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.chat.exchanges import Exchange
from memory.language import content_words, is_denied
from memory.language.content import plain_words, specific_words
from memory.model import Claim, HistorySegment, Role, StateItem, StateItemKind
from memory.ports.reading import GroundedSentence, WritingTask
from memory.sessions.compaction.sentence_kinds import SentenceKind
from memory.sessions.compaction.sentences import (
    ITEM_CHARACTERS_MAX,
    NAMED,
    TOPIC_CHARACTERS_MAX,
    Sentences,
    shortened,
    specifics_of,
    told_sentences,
    users_messages,
)
from memory.sessions.compaction.state_text import Plain

SENTENCES_MAX = 300  # of one segment; a longer one is not put to a model
CHARACTERS_MAX = 24_000  # of them all, some 6,000 tokens
NEW_WORDS_MAX = 0.4  # share of the content words of an entry that none of its sentences has
TOPIC = "topic"
KINDS = {
    "decision": StateItemKind.DECISION,
    "fact": StateItemKind.FACT,
    "answer": StateItemKind.ANSWER,
    "open_question": StateItemKind.QUESTION,
}

TASK = WritingTask(
    instruction=(Path(__file__).parent / "written_state.txt").read_text(encoding="utf-8"),
    kinds=(TOPIC, *KINDS),
    sentences_max=20,
    answer_tokens_max=800,
)


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    text: str
    is_users: bool

    @property
    def shown(self) -> str:
        return f"{Role.USER if self.is_users else Role.ASSISTANT}: {self.text}"


def spoken_sentences(
    exchanges: Sequence[Exchange], claims: Sequence[Claim], kinds: Mapping[str, SentenceKind], sentences: Sentences
) -> Sequence[SpokenSentence]:
    """What a model may see of a segment: no planted instructions, and nothing that is not to be kept. Empty if it is
    too long.
    """
    found = [
        SpokenSentence(text, is_users)
        for exchange in exchanges
        for text, is_users in _of_exchange(exchange, claims, kinds, sentences)
    ]
    is_short = len(found) <= SENTENCES_MAX and sum(len(one.text) for one in found) <= CHARACTERS_MAX
    return found if is_short else ()


def entry_faults(entries: Sequence[GroundedSentence], spoken: Sequence[SpokenSentence], plain: Plain) -> list[str]:
    """What is wrong with these entries, for the writer."""
    faults = [fault for entry in entries if (fault := _fault(entry, spoken, plain))]
    return faults if any(entry.kind in KINDS for entry in entries) else [*faults, "there is only a topic"]


def written_segment(
    extracted: HistorySegment, spoken: Sequence[SpokenSentence], entries: Sequence[GroundedSentence], plain: Plain
) -> HistorySegment | None:
    """The segment with the usable entries in the place of what they repeat; None if there is none."""
    usable = [entry for entry in entries if not _fault(entry, spoken, plain)]
    topics = [entry.text for entry in usable if entry.kind == TOPIC]
    usable = [entry for entry in usable if entry.kind in KINDS]
    if not usable:
        return None
    placed: list[tuple[int, StateItem]] = []
    replaced: set[int] = set()
    for entry in usable:
        repeats = [place for place, item in enumerate(extracted.items) if _repeats(entry, item, spoken)]
        replaced.update(repeats)
        placed.append((min(entry.sources), _item(entry, spoken, [extracted.items[place] for place in repeats])))
    position = 0
    for place, item in enumerate(extracted.items):
        position = next((n for n, one in enumerate(spoken, 1) if _is_said_in(item, one)), position)
        if place not in replaced:
            placed.append((position, item))
    items = tuple(item for _, item in sorted(placed, key=lambda one: one[0]))
    return HistorySegment(shortened(topics[0], TOPIC_CHARACTERS_MAX) if topics else extracted.topic, items)


def _of_exchange(
    exchange: Exchange, claims: Sequence[Claim], kinds: Mapping[str, SentenceKind], sentences: Sentences
) -> Iterable[tuple[str, bool]]:
    for message in users_messages(exchange):
        yield from ((one.text, True) for one in told_sentences(message, claims, kinds, sentences))
    yield from ((text, False) for text in sentences(exchange.answer))


def _fault(entry: GroundedSentence, spoken: Sequence[SpokenSentence], plain: Plain) -> str:
    """Why the entry must not be used; "" if it may."""
    text, numbers = entry.text, ", ".join(map(str, entry.sources))
    sources = [spoken[number - 1].text for number in entry.sources]
    known = " ".join(sources)
    if plain(text) != text or len(text) > ITEM_CHARACTERS_MAX:
        return f"plain sentences of at most {ITEM_CHARACTERS_MAX} characters, without < and >"
    if invented := specific_words(text) - plain_words(known):
        return f"sentences {numbers} do not say: {', '.join(sorted(invented))}"
    words = content_words(text)
    if len(words - content_words(known)) > NEW_WORDS_MAX * len(words):
        return f"keep to the words of sentences {numbers}"
    if entry.kind != TOPIC and is_denied(text) != any(map(is_denied, sources)):
        return f"sentences {numbers} say yes where it says no, or the other way round"
    return ""


def _repeats(entry: GroundedSentence, item: StateItem, spoken: Sequence[SpokenSentence]) -> bool:
    """Whether the entry is made of that sentence, and holds all by which somebody may come back to it."""
    is_source = any(_is_said_in(item, spoken[number - 1]) for number in entry.sources)
    return is_source and specific_words(item.text) <= plain_words(entry.text)


def _is_said_in(item: StateItem, sentence: SpokenSentence) -> bool:
    said = item.text.rstrip(" …")
    return said in sentence.text or sentence.text in said


def _item(entry: GroundedSentence, spoken: Sequence[SpokenSentence], repeats: Sequence[StateItem]) -> StateItem:
    """As valuable as what it repeats; what only the assistant said is no decision or fact of the user."""
    kind = KINDS[entry.kind]
    is_users = any(spoken[number - 1].is_users for number in entry.sources)
    if not is_users and kind is not StateItemKind.QUESTION:
        kind = StateItemKind.ANSWER
    scores = [item.score for item in repeats] or [NAMED if specifics_of(entry.text).weight else 0.0]
    return StateItem(kind, entry.text, max(scores))
