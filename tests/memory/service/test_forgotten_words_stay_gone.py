"""Random lives of a user: nothing that was forgotten or withheld stands in a summary, or in a note that holds one.

Every statement has a word of its own. What is gone is known from the user's words alone; the worker, the erasure and
the summarizer are the real ones, and any number of turns is learnt in one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from learning_parts import Bench
from note_lookup import notes_of
from plain_reader import PlainReader
from token_counts import counted_tokens
from turn_logs import Process, lease_at, sqlite_deployment

from memory.errors import NotFound
from memory.model import PastNote, Turn, TurnStatus
from memory.processes.background_parts import own_sentences
from memory.runtime.tracing import Telemetry
from memory.service.erasure import Erasure
from memory.service.summary_exclusions import WithdrawnSummaries
from memory.sessions.summaries.summarizer import Summarizer, SummarizerParts

STEPS = 24
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.soak("sixty lives in all")) for seed in range(4, 60))]
SESSIONS = ("s1", "s2", "s3")
SHAPES = ("My locker number is {}.", "I saw the {} yesterday.", "Is the {} any good?", "My sister found {} there.")
HOME = "I live in {}."  # what "where I live" means, and no other of these


@dataclass
class Life:
    """`alive`: the turns that say a word and that nobody has asked to forget. A word without any is gone."""

    bench: Bench
    process: Process
    random: Random
    erasure: Erasure
    summarizer: Summarizer
    turns: dict[str, list[Turn]] = field(default_factory=lambda: {session: [] for session in SESSIONS})
    alive: dict[str, set[str]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)  # of notes with summaries
    summaries_seen: int = 0
    homes: list[Turn] = field(default_factory=list)

    async def say(self, *messages: str, session: str = "", status: TurnStatus = TurnStatus.CLOSED) -> Turn:
        session = session or self.random.choice(SESSIONS)
        turn = await self.bench.tell(self.process, *messages, session=session, status=status)
        self.turns[session].append(turn)
        return turn

    def word(self) -> str:
        word = f"{self.random.choice(('zeb', 'qua', 'vor'))}{len(self.alive)}x"
        self.alive[word] = set()
        return word

    async def tell(self, word: str = "", shapes: Sequence[str] = SHAPES) -> Turn:
        word = word or self.word()
        turn = await self.say(self.random.choice(shapes).format(word))
        self.alive[word].add(turn.id)
        return turn

    async def repeat(self) -> None:
        if words := [word for word, turns in self.alive.items() if turns]:
            await self.tell(self.random.choice(words))

    async def withhold(self) -> None:
        await self.say(f"{self.random.choice(SHAPES).format(self.word())} Do not store that.")

    async def forget_the_previous_turn(self) -> None:
        session = self.random.choice(SESSIONS)
        if any(await self.process.log.dead_letters(limit=99)):
            return  # which turn comes before a request is not known then
        previous = self.turns[session][-1:]
        await self.say(self.random.choice(("Forget what I just said.", "Do not store that.")), session=session)
        for turn in previous:
            self.no_longer(turn)

    def no_longer(self, turn: Turn) -> None:
        for turns in self.alive.values():
            turns.discard(turn.id)

    async def forget_a_topic(self) -> None:
        if self.alive:
            word = self.random.choice(list(self.alive))
            await self.say(f"Forget the {word}.")
            self.alive[word].clear()

    async def tell_a_home(self) -> None:
        self.homes.append(await self.tell(shapes=(HOME, "Maybe {} is where I belong.")))

    async def forget_a_mere_kind(self) -> None:
        await self.say("Forget where I live.")
        for turn in self.homes:
            self.no_longer(turn)

    async def forget_everything(self) -> None:
        await self.say("Forget everything about me.")
        for turns in self.alive.values():
            turns.clear()

    async def forget_a_memory(self) -> None:
        await self.learn()
        if memories := await self.bench.memories():
            memory = self.random.choice(memories)
            await self.erasure.memory("ann", memory.id)
            for word, turns in self.alive.items():
                if word in memory.content:
                    turns.clear()

    async def forget_a_turn(self) -> None:
        await self.learn()
        if turns := [turn for of_session in self.turns.values() for turn in of_session]:
            turn = self.random.choice(turns)
            with suppress(NotFound):
                await self.erasure.source("ann", turn.id)
            self.turns[turn.scope.session_id].remove(turn)
            self.no_longer(turn)

    async def die(self) -> None:
        """The next window becomes a dead letter, unless it makes a request: that would not be known."""
        if lease := await lease_at(self.process.log, self.bench.deployment.clock() + 1):
            said = [message.content for turn in lease.turns for message in turn.messages]
            if any("Forget" in one or "store" in one for one in said):
                await self.process.log.retry_at(lease, due_at=0.0, reason="a test")
            else:
                await self.process.log.move_to_dead_letters(lease, now=0.0, reason="a test")

    async def replay(self) -> None:
        await self.process.log.replay([])

    async def learn(self) -> None:
        await self.bench.worker(self.process).work_off()

    async def end(self) -> None:
        """All sessions are over: their summaries are made, and stand in a note."""
        await self.learn()
        for session in SESSIONS:
            await self.process.summaries.end("ann", session)
        while await self.summarizer.work():
            self.bench.deployment.clock.now += 1
        found = [one.summary for one in await self.process.summaries.of_user("ann", limit=99)]
        self.summaries_seen += len(found)
        for made in found:
            note = PastNote(f"{made.title} {made.text}", (made.id,), 5)
            await self.process.notes.keep("ann", f"k-{made.id}", note, made_at=self.bench.deployment.clock())
            self.keys.append(f"k-{made.id}")

    async def said_again(self) -> list[str]:
        """The words that are gone, and stand somewhere after a round of the worker."""
        summaries, notes = self.process.summaries, self.process.notes
        await WithdrawnSummaries(summaries=summaries, notes=notes, clock=self.bench.deployment.clock).drop()
        standing = [one.summary for one in await summaries.of_user("ann", limit=99)]
        texts = [f"{one.title} {one.text}" for one in standing]
        texts += [note.text for note in (await notes_of(notes, "ann", self.keys)).values()]
        for due in await summaries.due(now=9e9, idle_seconds=0, limit=9):
            turns = await summaries.turns(due, limit=99)
            texts += [message.content for turn in turns for message in turn.messages]
        return [word for word, turns in self.alive.items() if not turns and any(word in text for text in texts)]


WEIGHTS = {
    Life.tell: 8,
    Life.tell_a_home: 2,
    Life.forget_a_mere_kind: 0.7,
    Life.repeat: 2,
    Life.withhold: 2,
    Life.forget_the_previous_turn: 2,
    Life.forget_a_topic: 2,
    Life.forget_everything: 0.4,
    Life.forget_a_memory: 1.5,
    Life.forget_a_turn: 1,
    Life.die: 1,
    Life.replay: 0.5,
    Life.learn: 2,
    Life.end: 3,
}


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_forgotten_or_withheld_word_comes_back(tmp_path: Path, seed: int) -> None:
    bench, steps = Bench(sqlite_deployment(tmp_path)), list[str]()
    async with bench.deployment.start() as process:
        parts = SummarizerParts(
            *(process.summaries, PlainReader(), bench.embedder, counted_tokens(), own_sentences, process.opt_outs),
            turns_min=1,
        )
        summarizer = Summarizer(parts, Telemetry(bench.deployment.clock, bench.metrics))
        life = Life(bench, process, Random(seed), bench.erasure(process), summarizer)
        for step in life.random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
            steps.append(step.__name__)
            await step(life)
            bench.deployment.clock.now += 1
            if step in (Life.learn, Life.end, Life.forget_a_memory, Life.forget_a_turn):
                assert await life.said_again() == [], steps
        await life.replay()
        await life.tell()
        await life.end()
        assert await life.said_again() == [], steps
        assert life.summaries_seen > 0
