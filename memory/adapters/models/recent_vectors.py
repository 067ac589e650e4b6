"""What embedders share: the words that some models want before a text, and the vectors of recent texts.

Questions come in repeats (a retry, a regenerated answer), and so do facts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from memory.model import Vector


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the model was trained to find before a question, and before what is kept to be found."""

    query: str = ""
    document: str = ""

    def of(self, *, as_query: bool) -> str:
        return self.query if as_query else self.document


class RecentVectors:
    """The vectors of the `texts_max` texts that were asked for last."""

    def __init__(self, *, texts_max: int, dimension: int) -> None:
        self._texts_max = texts_max
        self._dimension = dimension
        self._recent: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, texts: Sequence[str], embed: Callable[[list[str]], Awaitable[Vector]]) -> Vector:
        """One row for each text; those that are not known are embedded, each once, in the order of the texts."""
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        found = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= dict(zip(missing, await embed(missing), strict=True))
        for text, vector in found.items():
            self._recent[text] = vector
            self._recent.move_to_end(text)
        while len(self._recent) > self._texts_max:
            self._recent.popitem(last=False)
        return np.stack([found[text] for text in texts])


__all__ = ["Prefixes", "RecentVectors"]
