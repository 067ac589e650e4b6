"""Reads the training texts: messages with marked spans, and pairs of statements. README.md describes the format.

`python bench/reader/texts.py` counts them, and exits 1 if a mark or a label is unknown.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from fingerprint import CARDS_FOLDER, CHANGES_FOLDER, FOLDER, LANGUAGES_FOLDER, ORDERS_FOLDER

from memory.learn.reading.labels import ACTS, ATTRIBUTE_NAMES, CATEGORY_NAMES, PAIR_RELATIONS, RELATION_NAMES

MARK = re.compile(r"⟦([^|⟧]*)\||⟧|\[([vns]):|\]")
SEPARATOR = re.compile(r"^===[ \t]*$", re.MULTILINE)
OLDER = "old"  # begins a line of a card
KEPT_OUT_EVERY = 5
OTHERS_MAX = 4  # facts that are not meant, of each thing said later that the encoder is trained on
TOKEN_KINDS = {"v": 1, "n": 2, "s": 3}


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the message, worth remembering."""

    start: int
    end: int
    act: str
    attribute: str
    relation: str
    category: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A message without its marks; `kinds`: (start, end, kind) of values (1), names (2) and secrets (3)."""

    text: str
    before: str
    spans: tuple[Span, ...]
    kinds: tuple[tuple[int, int, int], ...]
    source: str


@dataclass(frozen=True, slots=True)
class Pair:
    relation: str
    language: str
    older: str
    newer: str


def messages(folder: Path = FOLDER) -> Iterator[Marked]:
    """Each once, in the order of the files. Raises `ValueError` naming the file and message that cannot be read."""
    seen: set[tuple[str, str]] = set()  # a reply means something else after another answer
    for path in sorted(folder.glob("*.txt")):
        for number, raw in enumerate(SEPARATOR.split(path.read_text(encoding="utf-8")), 1):
            if not raw.strip():
                continue
            try:
                marked = parsed(raw.strip("\n"), source=path.stem)
            except ValueError as error:
                raise ValueError(f"{path.name}, message {number}: {error}") from None
            if (marked.before, marked.text) not in seen:
                seen.add((marked.before, marked.text))
                yield marked


def parsed(raw: str, *, source: str = "") -> Marked:
    """Raises `ValueError` for a mark that is none of ours."""
    before = ""
    if raw.startswith("<<"):
        first, _, raw = raw.partition("\n")
        before = first[2:].strip()
    text, position = "", 0
    spans: list[Span] = []
    kinds: list[tuple[int, int, int]] = []
    span: tuple[int, str] | None = None
    inner: tuple[int, int] | None = None
    for match in MARK.finditer(raw):
        mark = match.group()
        if mark == "]" and inner is None:
            continue  # a bracket of the message itself
        text += raw[position : match.start()]
        position = match.end()
        if mark.startswith("⟦"):
            span = (len(text), match[1])
            position += raw[position : position + 1] == " "
        elif mark == "⟧":
            if span is None:
                raise ValueError("⟧ without ⟦")
            spans.append(_span(span[0], len(text), span[1]))
            span = None
        elif mark == "]" and inner is not None:
            kinds.append((inner[0], len(text), inner[1]))
            inner = None
        else:
            inner = (len(text), TOKEN_KINDS[match[2]])
    if span is not None or inner is not None:
        raise ValueError("a mark that is not closed")
    return Marked(text + raw[position:], before, tuple(spans), tuple(kinds), source)


def _span(start: int, end: int, label: str) -> Span:
    words = label.split()
    known = (ACTS[1:], ATTRIBUTE_NAMES, RELATION_NAMES, CATEGORY_NAMES)
    if len(words) != len(known) or any(word not in names for word, names in zip(words, known, strict=True)):
        raise ValueError(f"expected ACT ATTRIBUTE RELATION CATEGORY, got {label!r:.60}")
    return Span(start, end, *words)


def pairs(folder: Path = FOLDER) -> Iterator[Pair]:
    """Each once. Raises `ValueError`."""
    seen: set[tuple[str, str]] = set()
    for path in sorted(folder.glob("pairs_*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            cells = [cell.strip() for cell in line.split("\t")]
            if len(cells) != 4 or cells[0] not in PAIR_RELATIONS:
                raise ValueError(f"{path.name}, line {number}: expected relation, language, older, newer")
            if (cells[2], cells[3]) not in seen:
                seen.add((cells[2], cells[3]))
                yield Pair(cells[0], cells[1], cells[2], cells[3])


def all_messages() -> Iterator[Marked]:
    """What the encoder is trained on."""
    yield from messages(FOLDER)
    yield from messages(LANGUAGES_FOLDER)


def written_pairs() -> Iterator[Pair]:
    yield from pairs(FOLDER)
    yield from pairs(LANGUAGES_FOLDER)


def all_pairs() -> Iterator[Pair]:
    """What the encoder is trained on: of each card every statement once, with one wording of its fact."""
    yield from written_pairs()
    for card in cards():
        olders = cycle(card.olders)
        yield from (Pair(relation, card.language, next(olders), newer) for relation, newer in card.newers)
    for user in (*taught_users(ORDERS_FOLDER), *taught_users(CHANGES_FOLDER)):
        yield from chain.from_iterable(user.competing(OTHERS_MAX))


@dataclass(frozen=True, slots=True)
class Card:
    """A fact in several wordings, and statements with what they are to it, whichever wording it has."""

    language: str
    olders: tuple[str, ...]
    newers: tuple[tuple[str, str], ...]

    @property
    def pairs(self) -> Iterator[Pair]:
        """Each wording with each statement."""
        return (Pair(relation, self.language, older, newer) for older in self.olders for relation, newer in self.newers)


def cards(folder: Path = CARDS_FOLDER) -> Iterator[Card]:
    """Raises `ValueError` naming the file and card that cannot be read."""
    for path in sorted(folder.glob("cards_*.txt")):
        for number, raw in enumerate(SEPARATOR.split(path.read_text(encoding="utf-8")), 1):
            lines = [(kind.strip(), said.strip()) for kind, _, said in map(_labelled, raw.splitlines()) if said.strip()]
            if any(kind not in (OLDER, *PAIR_RELATIONS) for kind, _ in lines):
                raise ValueError(f"{path.name}, card {number}: a line is old, same, replaces or unrelated")
            olders = tuple(said for kind, said in lines if kind == OLDER)
            if olders:
                newers = tuple((kind, said) for kind, said in lines if kind != OLDER)
                yield Card(path.stem.split("_")[1], olders, newers)


@dataclass(frozen=True, slots=True)
class Later:
    """What a user says later, with the indexes of their facts that it ends and of those that it says once more.

    `leans`: of a correction, whether it says nothing alone; None if nobody said.
    """

    text: str
    ends: frozenset[int]
    repeats: frozenset[int]
    leans: bool | None

    def relation(self, place: int) -> str:
        return "replaces" if place in self.ends else "same" if place in self.repeats else "unrelated"


@dataclass(frozen=True, slots=True)
class FactsOfUser:
    """Facts of one user, and what they say later: orders to forget, or news.

    `is_kept_out`: nothing is trained on every fifth user, so that there are some to fit and to measure on.
    """

    language: str
    facts: tuple[str, ...]
    later: tuple[Later, ...]
    is_kept_out: bool

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(self.competing())

    def competing(self, others_max: int | None = None) -> Iterator[tuple[Pair, ...]]:
        """Of each thing said later: every fact that is meant, and of the others the first `others_max` behind one that
        moves on each time.
        """
        for number, said in enumerate(self.later):
            meant = sorted(said.ends | said.repeats)
            others = [place for place in range(len(self.facts)) if place not in meant]
            turned = [*others[number:], *others[:number]][:others_max]
            yield tuple(
                Pair(said.relation(place), self.language, self.facts[place], said.text) for place in (*meant, *turned)
            )


def users(folder: Path) -> list[FactsOfUser]:
    """Of `ORDERS_FOLDER` or `CHANGES_FOLDER`. Raises `ValueError`."""
    return [
        _user(json.loads(line), is_kept_out=number % KEPT_OUT_EVERY == 0)
        for number, line in enumerate(
            line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()
        )
    ]


def taught_users(folder: Path) -> list[FactsOfUser]:
    return [user for user in users(folder) if not user.is_kept_out]


def _user(read: dict[str, Any], *, is_kept_out: bool) -> FactsOfUser:
    facts = tuple(read["facts"])
    later = tuple(
        Later(one["text"], frozenset(one["ends"]), frozenset(one.get("repeats", ())), one.get("leans"))
        for one in read["later"]
    )
    if any(place not in range(len(facts)) for one in later for place in one.ends | one.repeats):
        raise ValueError(f"a fact that is not there: {facts[0]:.60}")
    return FactsOfUser(read["lang"], facts, later, is_kept_out)


def _labelled(line: str) -> tuple[str, str, str]:
    return line.partition(":")


@dataclass(frozen=True, slots=True)
class Leaning:
    """Whether `clause`, said after `before` (of the author) or in reply to `answer`, cannot be understood alone."""

    leans: bool
    before: str
    answer: str
    clause: str


def leanings(path: Path = FOLDER / "leaning.tsv") -> Iterator[Leaning]:
    """Raises `ValueError`."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 4 or cells[0] not in ("leans", "stands") or cells[2][:3] not in ("", "A: ", "U: "):
            raise ValueError(f"{path.name}, line {number}: expected leans or stands, language, words before, clause")
        said = cells[2][3:]
        answer, before = (said, "") if cells[2].startswith("A: ") else ("", said)
        yield Leaning(cells[0] == "leans", before, answer, cells[3])


def main() -> None:
    try:
        read, related, leaning = list(all_messages()), list(all_pairs()), list(leanings())
    except ValueError as error:
        sys.exit(str(error))
    acts = Counter(span.act for marked in read for span in marked.spans)
    languages = Counter(pair.language for pair in related)
    print(f"{len(read)} messages, {sum(bool(m.spans) for m in read)} with a span; {dict(acts.most_common())}")
    print(f"{len(leaning)} clauses, {sum(one.leans for one in leaning)} of which lean on what was said before")
    print(f"{len(related)} pairs: {dict(languages)}, {dict(Counter(pair.relation for pair in related))}")
    for name, folder in (("orders to forget", ORDERS_FOLDER), ("changes", CHANGES_FOLDER)):
        told = users(folder)
        print(f"{len(told)} users with {sum(len(user.later) for user in told)} {name}")
    print(f"{len(list(cards()))} cards")


if __name__ == "__main__":
    main()
