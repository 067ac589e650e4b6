"""What extraction costs a model server: by our own prompts, or by going on with the conversation that it just served.

`python bench/continuing.py`. Counted, not timed: the tokens of each prompt that a prefix cache (blocks of 16) does not
hold, per 100 turns of long chats, for windows of 1, 5 and 20 turns. Our own prompts are those of the product's two
learners; what they begin with is in the cache from the window before ("warm") or not ("cold"). A continuation is the
served prompt and reply, then the instruction without its examples, and the question: less than any model was seen to
manage with, in its favour. The cache still holds the conversation ("held"), or other chats have pushed it out
("evicted"). The answers of the extracting model are the same in all of them and left out.

Bars: our own prompts are the cheaper ones wherever the decision in docs/adr/0010 says so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from learn import sentence
from rich.progress import track
from rig import report

from memory.learn.llm.model_learner import Asking, DraftLearner, JudgeLearner
from memory.model import Message, Role, Scope, Turn, TurnStatus
from memory.ports import Completion

from prefix_cache import BLOCK_TOKENS, NOW, PrefixCache, Token, answered, rendered, thirty_exchanges  # isort: skip

TURNS = 60  # of each chat
CHATS = 3
WINDOWS = (1, 5, 20)  # turns; idle for 30 s ends one, 20 are the most that one holds
CONTEXT_TURNS = 8  # as the worker hands it in
SYSTEM = (
    "You are the assistant of a housing cooperative. Answer in the language of the question, briefly and kindly. Never "
    "promise repairs on a date; name the form that has to be filled in instead, and say where it is kept."
)
ANSWERS = {"keep": '{"keep":"yes"}', "means": '{"means":""}', "facts": '{"facts":[]}'}
SINCE = "Only what I said since: "
SINCE_WORDS = 8  # enough to find the place
SHARE_BAR, LONGEST_SHARE_BAR = 0.9, 0.5  # where one of them falls, docs/adr/0010 is to be thought over
LEARNERS = {"judge": JudgeLearner, "draft": DraftLearner}


@dataclass(frozen=True, slots=True)
class Chat:
    """`served`: the messages of the request that turn n came with, and its reply, as the server saw them."""

    turns: Sequence[Turn]
    messages: Sequence[dict[str, str]]

    def served(self, turns: int) -> Sequence[dict[str, str]]:
        return self.messages[: 1 + 2 * turns]


@dataclass
class Spent:
    """Tokens of prompts, and those of them that were in no cache."""

    calls: int = 0
    prompt: int = 0
    computed: int = 0

    def count(self, prompt: Sequence[Token], cache: PrefixCache) -> None:
        self.calls += 1
        self.prompt += len(prompt)
        self.computed += len(prompt) - len(cache.cached(prompt))

    def per_100_turns(self) -> dict[str, float]:
        share = 100 / (TURNS * CHATS)
        named = {"calls": self.calls, "prompt_tokens": self.prompt, "computed_tokens": self.computed}
        return {name: round(count * share, 1) for name, count in named.items()}


class Extraction(Protocol):
    """How a question of a learner reaches the model server."""

    def begin(self, chat: Chat, *, turns: int, window: int) -> None:
        """A window of a chat, its last turn the `turns`-th, is about to be learnt."""
        ...

    def prompt(self, messages: Sequence[Message]) -> list[Token]: ...


@dataclass
class OwnPrompts:
    """As the learner words them. `is_cold`: what they begin with is no longer in the cache when a window begins."""

    is_cold: bool = False
    cache: PrefixCache = field(default_factory=PrefixCache)

    def begin(self, chat: Chat, *, turns: int, window: int) -> None:
        if self.is_cold:
            self.cache = PrefixCache()

    def prompt(self, messages: Sequence[Message]) -> list[Token]:
        return rendered([{"role": m.role, "content": m.content} for m in messages], [])


@dataclass
class Continued:
    """The conversation as it was served, then what is wanted. `is_evicted`: other chats have taken its place."""

    strategy: str
    is_evicted: bool = False
    cache: PrefixCache = field(default_factory=PrefixCache)
    served: Sequence[dict[str, str]] = ()
    since: str = ""

    def begin(self, chat: Chat, *, turns: int, window: int) -> None:
        self.cache, self.served = PrefixCache(), chat.served(turns)
        first_said = chat.turns[turns - window].messages[0].content
        self.since = " ".join(first_said.split()[:SINCE_WORDS])
        if not self.is_evicted:
            *asked, reply = self.served
            self.cache.add([*rendered(asked, []), *answered(reply["content"])])

    def prompt(self, messages: Sequence[Message]) -> list[Token]:
        question = f"{SINCE}{self.since}" if self.strategy == "draft" else messages[-1].content
        wanted = {"role": Role.USER, "content": f"{messages[0].content}\n{question}"}
        return rendered([*self.served, wanted], [])


@dataclass
class CountingModel:
    """`memory.ports.ChatModel`: counts what it is asked, and says the same each time."""

    extraction: Extraction
    spent: Spent = field(default_factory=Spent)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        prompt, cache = self.extraction.prompt(messages), self.extraction.cache
        self.spent.count(prompt, cache)
        (field_asked,) = (schema or {})["properties"]
        answer = ANSWERS[field_asked]
        cache.add([*prompt, *answered(answer)])
        return Completion(answer)


def a_chat(number: int) -> Chat:
    """Statements and requests as in `learn.py`, with answers of some hundred tokens."""
    answers = [answer for _, answer in thirty_exchanges()]
    turns: list[Turn] = []
    messages = [{"role": "system", "content": SYSTEM}]
    for place in range(TURNS):
        said, answer = sentence(number + 20 * place), answers[(number + place) % len(answers)]
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
        turns.append(
            Turn(
                id=f"{number}/{place}",
                scope=Scope(f"user-{number}", session_id="s"),
                at=NOW + 60.0 * place,
                messages=(Message(Role.USER, said),),
                status=TurnStatus.CLOSED,
                answer=answer,
            )
        )
    return Chat(turns, messages)


async def learnt(strategy: str, extraction: Extraction, chats: Sequence[Chat], window: int) -> dict[str, float]:
    model = CountingModel(extraction)
    learner = LEARNERS[strategy](model, Asking(name="m"))
    for turns in range(window, TURNS + 1, window):
        for chat in chats:
            extraction.begin(chat, turns=turns, window=window)
            first = turns - window
            await learner.extract(chat.turns[first:turns], context=chat.turns[max(0, first - CONTEXT_TURNS) : first])
    return model.spent.per_100_turns()


Found: TypeAlias = dict[str, dict[int, dict[str, dict[str, float]]]]
"""Strategy → turns of a window → way → figures."""


async def figures() -> Found:
    chats = [a_chat(number) for number in range(CHATS)]
    found: Found = {strategy: {window: {} for window in WINDOWS} for strategy in LEARNERS}
    runs = [(strategy, window) for strategy in LEARNERS for window in WINDOWS]
    for strategy, window in track(runs, description="windows"):
        ways: dict[str, Extraction] = {
            "own, warm": OwnPrompts(),
            "own, cold": OwnPrompts(is_cold=True),
            "continued, held": Continued(strategy),
            "continued, evicted": Continued(strategy, is_evicted=True),
        }
        for way, extraction in ways.items():
            found[strategy][window][way] = await learnt(strategy, extraction, chats, window)
    return found


def held_share_to_pay(ways: Mapping[str, Mapping[str, float]]) -> float:
    """In what share of windows the cache must still hold the conversation for continuing to cost less; above 1: never.

    With our own prompts warm: all users' windows begin with the same ones, hence they are used all the time.
    """
    own, held, evicted = (
        ways[way]["computed_tokens"] for way in ("own, warm", "continued, held", "continued, evicted")
    )
    return round((evicted - own) / (evicted - held), 3)


def missed(shares: Mapping[str, Mapping[int, float]]) -> list[str]:
    """What the decision stands on and is no longer so, in words."""
    checks = {
        "a judging model never pays for continuing": all(share > 1 for share in shares["judge"].values()),
        "a drafting one does not in windows of one turn": shares["draft"][1] > 1,
        f"nor in those of five, unless {SHARE_BAR} are held": shares["draft"][5] > SHARE_BAR,
        f"and in the longest only if at least {LONGEST_SHARE_BAR} are held": shares["draft"][20] >= LONGEST_SHARE_BAR,
    }
    return [bar for bar, is_met in checks.items() if not is_met]


def main() -> int:
    found = asyncio.run(figures())
    shares = {name: {n: held_share_to_pay(ways) for n, ways in windows.items()} for name, windows in found.items()}
    failed = missed(shares)
    rows = [
        (f"{strategy}, {window}", way, *values.values())
        for strategy, windows in found.items()
        for window, ways in windows.items()
        for way, values in [*ways.items(), ("pays if held", {"share": shares[strategy][window]})]
    ]
    result = {"turns": TURNS * CHATS, "block_tokens": BLOCK_TOKENS, "missed": failed, "held_share": shares, **found}
    report("continuing", result, rows, ["window", "extraction", "calls", "prompt tokens", "computed tokens"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
