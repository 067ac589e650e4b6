"""The parts of learning as processes, for the tests that kill them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from learning_processes import LearningProcesses, running_learning_processes
from two_of_each import TURN_LOGS


@pytest.fixture(scope="session")
def shared_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LearningProcesses]:
    with running_learning_processes(tmp_path_factory.mktemp("learning")) as parts:
        yield parts


@pytest.fixture(params=TURN_LOGS)
def parts(shared_parts: LearningProcesses, request: pytest.FixtureRequest) -> Iterator[LearningProcesses]:
    """The shared servers with a turn log and a collection of this test's own; its workers are killed at the end."""
    name = "".join(character for character in request.node.name if character.isalnum())[-40:]
    mine = shared_parts.apart(name, turn_log=request.param)
    try:
        yield mine
    finally:
        mine.end()
