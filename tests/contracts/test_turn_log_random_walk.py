"""Random walks: whatever is done to the queue in whatever order, it agrees with a model that fits on a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from queue_walk import STEPS, Walk
from turn_logs import DEPLOYMENTS, adapters

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.soak("more of the same")) for seed in range(2, 12))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("adapter", adapters())
async def test_the_queue_agrees_with_the_model_on_every_way(adapter: str, seed: int, tmp_path: Path) -> None:
    async with DEPLOYMENTS[adapter](tmp_path).start() as process:
        walk = Walk(process.log, seed)
        for _ in range(STEPS):
            await walk.step()
        await walk.learn_everything()
        assert len(walk.model.learnt) == len(set(walk.model.learnt))
