"""Commands as an operator runs them, in this process; and deployments whose turn log they open by its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from postgres_server import postgres_server
from prometheus_client import CollectorRegistry
from turn_logs import DEPLOYMENTS, Deployment
from typer.testing import CliRunner, Result

from extproc.cli import memproxy
from memory.processes import composition

NOBODY = "http://127.0.0.1:1"  # no memories are needed
URLS: dict[str, Callable[[], str]] = {"postgres": lambda: postgres_server().url}


def run(*words: object, code: int = 0, answer: str | None = None, **environment: str) -> Result:
    """With metrics of its own, as a process has them. Raises what the command raises."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "REGISTRY", CollectorRegistry())
        runner = CliRunner(env={"COLUMNS": "200", **environment})
        result = runner.invoke(memproxy, [str(word) for word in words], input=answer, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def told(*words: object, **options: Any) -> dict[str, Any]:
    """The JSON that the command prints. `options`: of `run`."""
    found: dict[str, Any] = json.loads(run(*words, "--json", **options).stdout)
    return found


def memories_of(url: str, user: str, *words: object) -> list[dict[str, Any]]:
    """As `list` shows them."""
    found: list[dict[str, Any]] = told("list", "--user", user, "--api", url, *words)["memories"]
    return found


@dataclass(frozen=True, slots=True)
class CommandWorld:
    """`deployment`: what the commands find; its clock shows the time of this machine."""

    deployment: Deployment
    config: Path

    def run(self, *words: str, code: int = 0, answer: str | None = None) -> Result:
        return run(*words, "--config", self.config, code=code, answer=answer)


def command_world(kind: str, folder: Path) -> CommandWorld:
    """`kind`: of `DEPLOYMENTS`. It is empty."""
    config = settings_file(folder, database_url=URLS[kind]() if kind in URLS else "")
    deployment = DEPLOYMENTS[kind](folder / "data")
    deployment.clock.now = composition.SYSTEM_CLOCK()
    return CommandWorld(deployment, config)


def settings_file(folder: Path, *, database_url: str = "") -> Path:
    """Of a deployment that keeps its data in `folder / "data"`."""
    (folder / "data").mkdir()
    settings = {"data_dir": str(folder / "data"), "milvus_uri": NOBODY, "database_url": database_url}
    config = folder / "c.yaml"
    config.write_text(json.dumps(settings), encoding="utf-8")
    return config
