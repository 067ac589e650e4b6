"""What a model has said of one window so far: whoever repeats the window asks only what is missing.

Each answer is stored before the next question is put, in place of the plan that there is not yet. It is found again by
the very words that were asked, so that it holds at every attempt, and for a pair of statements as long as both stand as
they did, whoever wrote meanwhile. Never holds an answer that could not be read: that is no answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence

from memory.learn.facts import Fact
from memory.learn.llm import extracted
from memory.learn.llm.prompting import Prompt

ANSWER_CHARACTERS_MAX = 64_000  # thirty facts at their longest; what rambles on is asked for again
KEY_BYTES = 12


class Heard:
    """`facts`: what was extracted, None until all of it was."""

    def __init__(self, stored: bytes | None = None, *, store: Callable[[bytes], Awaitable[None]] | None = None) -> None:
        """`stored`: by an earlier attempt, or what is no extraction. Without `store` nothing outlives this attempt."""
        self.facts: Sequence[Fact] | None = None if stored is None else extracted.decode(stored)
        self._answers = {} if stored is None else extracted.answers_of(stored)
        self._store = store

    @property
    def is_silent(self) -> bool:
        """Whether the model gave no answer that could be read."""
        return not self._answers

    def answer(self, prompt: Prompt, question: str) -> str | None:
        return self._answers.get(_key(prompt, question))

    async def note(self, prompt: Prompt, question: str, answer: str) -> None:
        """Return once the answer would survive a crash. Raises what `store` does."""
        if len(answer) <= ANSWER_CHARACTERS_MAX:
            self._answers[_key(prompt, question)] = answer
            await self._stored()

    async def conclude(self, facts: Sequence[Fact]) -> None:
        """All that the window teaches was extracted. Raises what `store` does."""
        self.facts = facts
        await self._stored()

    async def _stored(self) -> None:
        if self._store is not None:
            await self._store(extracted.encode(self.facts, self._answers))


def _key(prompt: Prompt, question: str) -> str:
    asked = f"{prompt.version}\x1f{question}".encode(errors="surrogatepass")
    return hashlib.blake2b(asked, digest_size=KEY_BYTES).hexdigest()


__all__ = ["Heard"]
