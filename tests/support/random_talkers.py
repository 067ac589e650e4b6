"""Users who act at random, as clients make them act, and what must be recorded and recalled of it.

They talk, edit, ask for another answer, go back to an earlier branch, open a second tab with the same beginning, get
errors, talk while we are down, and bring conversations that began elsewhere. `Served` is what carries their requests.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memory.model import Turn, TurnStatus


@dataclass(eq=False)
class Said:
    """What the client knows of one exchange. `is_observed`: not said while we were down. `is_foreign`: said to somebody
    else, at the beginning of a conversation, before we had any outage.
    """

    text: str
    answer: str
    parent: Said | None = None
    is_observed: bool = False
    is_failed: bool = False
    is_sent: bool = False
    is_foreign: bool = False

    def path(self) -> list[Said]:
        above = self.parent.path() if self.parent else []
        return [*above, self]

    @property
    def is_seen(self) -> bool:
        """Whether somebody saw it, or something before it, when it was said."""
        return self.is_observed or (self.parent is not None and self.parent.is_seen)

    def top(self) -> Said:
        """The beginning of the session that it belongs to."""
        return self.parent.top() if self.parent is not None and self.parent.is_seen else self


class Served(Protocol):
    """Answers a request with `said.answer`, or an error."""

    async def chat(self, user: str, said: Said) -> None: ...


def messages_of(said: Said) -> list[dict[str, Any]]:
    """The conversation up to the question, as a client sends it."""
    messages = []
    for one in said.path():
        messages += [{"role": "user", "content": one.text}, {"role": "assistant", "content": one.answer}]
    return messages[:-1]


@dataclass
class Tab:
    """One conversation of the client. `leaf`: what it shows."""

    said: list[Said] = field(default_factory=list)
    leaf: Said | None = None


@dataclass
class Talker:
    """A user with some tabs, who acts at random."""

    name: str
    chance: random.Random
    tabs: list[Tab] = field(default_factory=list)
    newest: dict[Said, Said] = field(default_factory=dict)  # by the beginning of a session, its newest request
    numbers: int = 0
    outages: int = 0

    def news(self) -> str:
        self.numbers += 1
        return f"I like {self.name}thing{self.numbers} a lot"

    async def act(self, served: Served) -> None:
        chance = self.chance
        tab = chance.choice(self.tabs)
        act = chance.choice(("say", "say", "say", "edit", "again", "back", "miss", "fail"))
        if tab.leaf is None:
            await self.begin(served, tab)
            return
        edited = chance.choice(tab.leaf.path())
        match act:
            case "edit" if edited.parent is not None:
                await self.say(served, tab, self.news(), edited.parent)
            case "again" if edited.parent is not None and edited.is_observed:
                await self.say(served, tab, edited.text, edited.parent)
            case "back":
                shown = [one for one in tab.said if not one.is_failed]
                left = [one for one in shown if one.is_sent and not self.holds(one)]
                await self.say(served, tab, self.news(), chance.choice(left or shown))
            case "miss":
                self.miss(tab, tab.leaf)
                await self.say(served, tab, self.news(), tab.leaf)
            case "fail":
                text = self.news()
                await self.say(served, tab, text, tab.leaf, is_failed=True)
                await self.say(served, tab, text, tab.leaf)
            case _:
                await self.say(served, tab, self.news(), tab.leaf)

    async def begin(self, served: Served, tab: Tab) -> None:
        others = [other.said[0].text for other in self.tabs if other.said and other.said[0].is_observed]
        if others and self.chance.random() < 0.5:
            await self.say(served, tab, self.chance.choice(others), None)
        elif self.chance.random() < 0.2:
            self.miss(tab, None)
            await self.say(served, tab, self.news(), tab.leaf)
        else:
            await self.say(served, tab, self.news(), None)

    def live_through_outage(self) -> None:
        """Nobody records; some conversations go on, or begin."""
        self.outages += 1
        for tab in self.tabs:
            if self.chance.random() < 0.3:
                self.miss(tab, tab.leaf)

    def miss(self, tab: Tab, parent: Said | None) -> None:
        """It says something that we do not see."""
        tab.leaf = Said(self.news(), f"Answer {self.numbers} of the outage.", parent)
        tab.leaf.is_foreign = parent is None and not self.outages
        tab.said.append(tab.leaf)

    async def say(self, served: Served, tab: Tab, text: str, parent: Said | None, *, is_failed: bool = False) -> None:
        self.numbers += 1
        said = Said(text, "" if is_failed else f"Answer {self.numbers}.", parent, is_failed=is_failed)
        await served.chat(self.name, said)
        said.is_observed = True
        for one in said.path():
            one.is_sent = True
        tab.said.append(said)
        tab.leaf = parent if is_failed else said
        self.newest[said.top()] = said

    def sent(self) -> list[Said]:
        """What belongs into the record."""
        return [one for tab in self.tabs for one in tab.said if one.is_sent and not one.is_foreign]

    def holds(self, said: Said) -> bool:
        """Whether its session has not left it, or was never seen to begin."""
        return not said.is_seen or said in self.newest[said.top()].path()


def check_record(talker: Talker, record: Sequence[Turn]) -> dict[tuple[str, str], Turn]:
    """The record is what was said, each exchange once and in its session. Returns the turns by question and answer."""
    said = Counter((one.text, one.answer, status_of(one)) for one in talker.sent())
    assert Counter((turn.messages[0].content, turn.answer, turn.status) for turn in record) == said
    by_words = {(turn.messages[0].content, turn.answer): turn for turn in record}
    check_sessions(talker, by_words)
    return by_words


def check_sessions(talker: Talker, by_words: dict[tuple[str, str], Turn]) -> None:
    sessions: dict[Said, str] = {}
    for one in talker.sent():
        if one.is_seen:
            session_id = by_words[one.text, one.answer].scope.session_id
            assert sessions.setdefault(one.top(), session_id) == session_id
    assert len(set(sessions.values())) == len(sessions)


def status_of(said: Said) -> TurnStatus:
    if said.is_failed:
        return TurnStatus.FAILED
    return TurnStatus.CLOSED if said.is_observed else TurnStatus.FILLED_IN
