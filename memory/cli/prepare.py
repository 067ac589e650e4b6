"""`memproxy prepare`: makes the models ready that running parts load, once, with its progress on stderr.

It decides nothing, and touches neither the store nor the turn log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from typer import echo

from memory.cli.options import ConfigOption, JsonOption
from memory.cli.output import print_json
from memory.settings import Settings
from memory.settings.loader import from_process


def prepare(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Make the models ready in `models_dir`: exported and in 8 bits, so that no start has to. Costs nothing the
    second time.
    """
    settings = from_process(config, {})
    ready = make_ready(settings)
    if as_json:
        print_json({"models_dir": str(settings.models_path), "ready": ready})
        return
    for name in ready:
        echo(f"the {name} is ready in {settings.models_path}", err=True)


def make_ready(settings: Settings) -> list[str]:
    """Make what is missing of the models that these settings want; their names. Raises `BadSetting`."""
    from rich.console import Console

    from memory.adapters.models import embedding_model, reader_weights

    steps: dict[str, Callable[[], object]] = {}
    if not settings.memory.embedding.endpoint:
        steps["embedding model"] = partial(
            embedding_model.prepared, settings.memory.embedding.model, settings.models_path
        )
    if settings.memory.learn.reader != "off":
        steps["trained reader"] = partial(reader_weights.prepared, settings.models_path)
    console = Console(stderr=True)
    for name, step in steps.items():
        with console.status(f"preparing the {name} (up to 30 s)"):
            step()
    return list(steps)
