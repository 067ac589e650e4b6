"""Recognises an exchange that a client sends again by its words, on Redis: the rules are those of SQLite.

A user's digests are members of a sorted set in the order of their bytes, words first, with the turn and, where there is
none because it must not be recorded, the digest of the answer. They outlive the turn. The key of all digests is in a
place of its own: nobody compares them with a guess who has not the whole server.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from memory.adapters import tree_rules
from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.turn_records import end_decoded
from memory.adapters.turn_texts import to_text
from memory.model import SentExchange, Turn
from memory.model.exchanges import digest_of, folded, is_distinctive, words_of

KEY_BYTES = 32
PRUNED_AT_ONCE = 1_000


class KnownExchanges:
    """Of all users."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._key = b""

    async def words_digest(self, turn: Turn) -> str:
        """Of what the user said in it; "" if nothing."""
        words = words_of(turn.messages)
        return await self._digest(words) if words else ""

    async def was_recorded(self, turn: Turn) -> bool:
        """Whether this very turn is, or was, in the record of its user."""
        digest = await self.words_digest(turn)
        return bool(digest) and bool(await self._rows(turn.scope.user_id, f"{digest}:{turn.id}:", limit=1))

    async def leaving_out(self, user_id: str, exchange: SentExchange, *, place: int) -> list[Command]:
        """This user's record must not hold it. Without a key it is recognised by its words alone: distinctive ones."""
        words = words_of(exchange.said)
        if not words or not (exchange.key or is_distinctive(words)):
            return []
        answer = await self._digest(exchange.answer) if exchange.answer else ""
        return remembering(UserKeys(user_id), await self._digest(words), place=place, answer=answer)

    async def are_known(self, user_id: str, exchanges: Sequence[SentExchange]) -> list[bool]:
        """For each, whether it is recorded, was deleted, or must not be recorded."""
        said = [words_of(one.said) for one in exchanges]
        digests = [await self._digest(words) for words in said]
        answers = [await self._digest(one.answer) for one in exchanges]
        keys = UserKeys(user_id)
        reading = [_rows_command(keys, f"{digest}:", tree_rules.LOOKS_MAX) for digest in digests]
        found = [[_parsed(entry) for entry in entries] for entries in await self._client.calls(reading)]
        recorded = await self._answers(keys, [turn_id for rows in found for turn_id, _ in rows if turn_id])
        is_known: list[bool] = []
        for exchange, words, answer, rows in zip(exchanges, said, answers, found, strict=True):
            if any(not turn_id and digest in ("", answer) for turn_id, digest in rows):
                is_known.append(True)
                continue
            is_enough, shown = is_distinctive(words), ("", folded(exchange.answer))
            matching = sum(is_enough or recorded.get(turn_id, "") in shown for turn_id, _ in rows if turn_id)
            is_known.append(matching >= min(exchange.occurrence, tree_rules.LOOKS_MAX))
        return is_known

    async def turns_saying(self, user_id: str, exchange: SentExchange) -> list[str]:
        """Ids of turns that are, or were, recorded with these words."""
        digest = await self._digest(words_of(exchange.said))
        rows = await self._rows(user_id, f"{digest}:", limit=tree_rules.DIGESTS_MAX)
        return [turn_id for turn_id, _ in rows if turn_id]

    async def pruning(self, user_id: str, *, place: int) -> list[Command]:
        """Drops the oldest digests past the limit, now and then."""
        if place % tree_rules.PRUNED_EVERY:
            return []
        keys = UserKeys(user_id)
        oldest = await self._client.call("ZRANGE", keys.exchange_places, 0, -tree_rules.DIGESTS_MAX)
        found = oldest[:PRUNED_AT_ONCE]
        return [("ZREM", key, *found) for key in (keys.exchanges, keys.exchange_places)] if found else []

    async def _rows(self, user_id: str, prefix: str, *, limit: int) -> list[tuple[str, str]]:
        entries = await self._client.call(*_rows_command(UserKeys(user_id), prefix, limit))
        return [_parsed(entry) for entry in entries]

    async def _answers(self, keys: UserKeys, turn_ids: Sequence[str]) -> dict[str, str]:
        """Of those that are recorded, white space folded."""
        names = list(dict.fromkeys(turn_ids))
        ends = await self._client.calls([("HGET", keys.turn(turn_id), "e") for turn_id in names])
        return {
            turn_id: folded(to_text(end_decoded(end).answer))
            for turn_id, end in zip(names, ends, strict=True)
            if end is not None
        }

    async def _digest(self, text: str) -> str:
        if not self._key:
            made = secrets.token_bytes(KEY_BYTES)
            (_, self._key) = await self._client.calls(
                [("SET", log_keys.DIGEST_KEY, made, "NX"), ("GET", log_keys.DIGEST_KEY)]
            )
        return digest_of(text, key=self._key)


def remembering(keys: UserKeys, words: str, *, place: int, turn_id: str = "", answer: str = "") -> list[Command]:
    """Writes what was said. `words`, `answer`: digests; without words nothing is written."""
    entry = f"{words}:{turn_id}:{answer}"
    if not words:
        return []
    return [("ZADD", keys.exchanges, 0, entry), ("ZADD", keys.exchange_places, place, entry)]


def _rows_command(keys: UserKeys, prefix: str, limit: int) -> Command:
    first = prefix.encode()
    return ("ZRANGE", keys.exchanges, b"[" + first, b"(" + first + b"\xff", "BYLEX", "LIMIT", 0, limit)


def _parsed(entry: bytes) -> tuple[str, str]:
    """The turn's id and the digest of the answer."""
    turn_id, answer = entry.decode().split(":", 1)[1].rsplit(":", 1)
    return turn_id, answer
