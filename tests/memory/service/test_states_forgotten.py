"""What is forgotten is in no state of a conversation, whichever way it is forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from library_parts import NOW, Parts, library_parts
from recorded import added

from memory.model import CompactedState, Scope
from memory.service.requests import NewMemory

ANN = Scope("ann")
STATE = CompactedState(3, (), "what was said", 5, 300)

Forgetting = Callable[[Parts, str], Awaitable[object]]


async def one_memory(parts: Parts, memory_id: str) -> object:
    return await parts.library.delete("ann", memory_id)


async def everything(parts: Parts, memory_id: str) -> object:
    del memory_id
    return await parts.library.delete_scope("ann")


async def the_session(parts: Parts, memory_id: str) -> object:
    del memory_id
    return await parts.library.conversations.delete_session("ann", "s1", keep_memories=True)


async def one_message(parts: Parts, memory_id: str) -> object:
    del memory_id
    return await parts.library.conversations.delete_message("ann", "m1")


async def old_messages(parts: Parts, memory_id: str) -> object:
    del memory_id
    return await parts.library.conversations.trim("ann", "s1", keep_last=0)


@pytest.mark.parametrize("forgetting", [one_memory, everything, the_session, one_message, old_messages])
async def test_forgetting_deletes_the_states_of_that_user_alone(tmp_path: Path, forgetting: Forgetting) -> None:
    async with library_parts(tmp_path) as parts:
        [memory_id] = await parts.library.add(ANN, [NewMemory("My boat is called Ida.")])
        await parts.turn_log.messages.add("ann", [added("m1", "My boat is called Ida.")])
        for user in ("ann", "bob"):
            await parts.states.keep(user, "k", STATE, made_at=NOW - 1)
        await forgetting(parts, memory_id)
        assert await parts.states.find("ann", ["k"]) is None
        assert await parts.states.find("bob", ["k"]) is not None


async def test_a_user_without_memories_has_states_to_delete_too(tmp_path: Path) -> None:
    async with library_parts(tmp_path) as parts:
        await parts.states.keep("ann", "k", STATE, made_at=NOW - 1)
        await everything(parts, "")
        assert await parts.states.find("ann", ["k"]) is None
