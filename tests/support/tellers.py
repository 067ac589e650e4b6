"""Users who talk in messages of one letter each, straight to the conversation trees of a turn log."""

from __future__ import annotations

from dataclasses import dataclass

from turn_logs import START, Process, a_turn, windows

from memory.model import Message, SentConversation, SentExchange, Turn, TurnStatus


def sent(path: str, *, given: bool = False, answers: str = "") -> SentConversation:
    """A conversation of messages of one letter each, with the answers that are shown ("x" where not stated)."""
    earlier = tuple(
        SentExchange(path[: n + 1], (Message("user", path[n]),), answers[n : n + 1] or "x")
        for n in range(len(path) - 1)
    )
    return SentConversation((path,), earlier, is_session_given=given)


@dataclass
class Teller:
    """Opens turns, each in a new session unless it continues another; and closes them."""

    process: Process
    user: str = "ann"
    count: int = 0

    async def __call__(
        self, path: str, *, answer: str = "x", session: str = "", answers: str = "", is_open: bool = False
    ) -> tuple[str, str]:
        self.count += 1
        turn_id = f"{self.user}-t{self.count}"
        turn = a_turn(
            turn_id, user=self.user, session=session or f"new-{turn_id}", text=path[-1], at=START + self.count
        )
        found = await self.process.log.trees.open(turn, sent(path, given=bool(session), answers=answers))
        if not is_open:
            await self.process.log.finish(
                turn_id, status=TurnStatus.CLOSED, answer=answer, answered_at=START + self.count
            )
        return turn_id, found

    async def learn(self) -> list[str]:
        """The turns that are learnt now."""
        return [turn_id for window in await windows(self.process.log, START + 10_000) for turn_id in window]

    async def record(self) -> list[Turn]:
        return [turn async for turn in self.process.log.turns(self.user)]
