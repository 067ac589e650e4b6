"""A deployment's turn log on each adapter, and commands that open it by its settings, as an operator runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from redis_nodes import redis_nodes
from redis_server import redis_server
from turn_logs import DEPLOYMENTS, Deployment
from typer.testing import CliRunner, Result

from memory.cli import main
from memory.processes import composition

NOBODY = "http://127.0.0.1:1"  # no memories are needed
URLS: dict[str, Callable[[], str]] = {
    "redis": lambda: redis_server().url,
    "redis cluster": lambda: redis_nodes().url,
}


@dataclass(frozen=True, slots=True)
class CommandWorld:
    """`deployment`: what the commands find; its clock shows the time of this machine."""

    deployment: Deployment
    config: Path

    def run(self, *words: str, code: int = 0, answer: str | None = None) -> Result:
        result = run_command(self.config, *words, answer=answer)
        assert result.exit_code == code, result.output
        return result


def run_command(config: Path, *words: str, answer: str | None = None) -> Result:
    """With metrics of its own, as a process has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "REGISTRY", CollectorRegistry())
        given = [*words, "--config", str(config)]
        return CliRunner(env={"COLUMNS": "200"}).invoke(main.commands, given, input=answer, catch_exceptions=False)


def command_world(kind: str, folder: Path) -> CommandWorld:
    """`kind`: of `DEPLOYMENTS`. It is empty."""
    config = settings_file(folder, redis_url=URLS[kind]() if kind in URLS else "")
    deployment = DEPLOYMENTS[kind](folder / "data")
    deployment.clock.now = composition.SYSTEM_CLOCK()
    return CommandWorld(deployment, config)


def settings_file(folder: Path, *, redis_url: str = "") -> Path:
    """Of a deployment that keeps its data in `folder / "data"`."""
    (folder / "data").mkdir()
    settings = {"data_dir": str(folder / "data"), "milvus_uri": NOBODY, "redis_url": redis_url}
    config = folder / "c.yaml"
    config.write_text(json.dumps(settings), encoding="utf-8")
    return config
