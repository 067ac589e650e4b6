"""The rules of a user's queue as pure functions agree with the model of the queue on random walks."""

from __future__ import annotations

from typing import cast

import pytest
from pure_queues import PureQueues
from queue_walk import STEPS, Walk

from memory.ports import TurnLog


@pytest.mark.parametrize("seed", range(40))
async def test_transitions_and_choice_agree_with_the_model(seed: int) -> None:
    queues = PureQueues()
    walk = Walk(cast(TurnLog, queues), seed)
    for _ in range(STEPS):
        await walk.step()
    await walk.learn_everything()
    assert len(walk.model.learnt) == len(set(walk.model.learnt))
    assert all(queue.is_empty for queue in queues.queues)
