"""The parts of learning as processes, for the tests that kill them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from learning_processes import LearningProcesses, running_learning_processes
from postgres_server import own_postgres_server


@pytest.fixture(scope="session")
def shared_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LearningProcesses]:
    with running_learning_processes(tmp_path_factory.mktemp("learning")) as parts:
        yield parts


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak("the same with another queue"))])
def parts(shared_parts: LearningProcesses, request: pytest.FixtureRequest) -> Iterator[LearningProcesses]:
    """The shared store with a turn log and a collection of this test's own; its workers are killed at the end."""
    name = "".join(character for character in request.node.name if character.isalnum())[-40:]
    with ExitStack() as stack:
        database_url = stack.enter_context(own_postgres_server()).url if request.param == "postgres" else ""
        mine = shared_parts.apart(name, database_url=database_url)
        stack.callback(mine.end)
        yield mine
