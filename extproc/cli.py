"""The console script `memproxy`: the whole product with `up`, its parts one by one, and the operator's tools.

Parses arguments and calls. What one command needs is imported when that command runs, so that a filter restarts quickly
after a crash.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from extproc.supervisor.locks_and_ports import CannotStart
from memory.cli.main import commands, run_part
from memory.errors import BadInput, MemproxyError
from memory.settings import SettingDoc, every_setting
from memory.settings.loader import from_process

BAD_START_CODE = 2  # as click's own for invalid arguments: a restart will not help
UP_FLAGS = (
    "upstream",
    "host",
    "port",
    "api_port",
    "envoy_admin_port",
    "metrics_port",
    "milvus_uri",
    "redis_url",
    "identity",
    "trusted_peers",
    "data_dir",
    "filters",
    "workers",
    "ports_file",
    "log_format",
)
_Function = TypeVar("_Function", bound=Callable[..., Any])

_config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=None,
    help="YAML file with settings. None is read unless named.",
)


def _flags(*paths: str) -> Callable[[_Function], _Function]:
    """An option for each of these settings, with the setting's own description."""
    known = {doc.path: doc for doc in every_setting()}

    def decorate(function: _Function) -> _Function:
        for path in reversed(paths):
            function = click.option(f"--{path.replace('_', '-')}", path, default=None, help=_help(known[path]))(
                function
            )
        return function

    return decorate


def _help(doc: SettingDoc) -> str:
    default = ", ".join(doc.default) if isinstance(doc.default, tuple) else str(doc.default)
    return f"{doc.meaning} [{default or 'none'}; {doc.environment}]"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memproxy")
def memproxy() -> None:
    """A transparent memory layer for vLLM behind Envoy: chats that remember their user across sessions."""


@memproxy.command()
@_config
@_flags(*UP_FLAGS)
def up(config: Path | None, **flags: object) -> None:
    """Start everything: Envoy, filter, worker, API, Milvus Lite, and a small model without --upstream.

    Prints one line, `ready http://HOST:PORT`, once a chat would be recalled and learnt. Logs go to standard error.
    Flags override the environment, which overrides the file.
    """
    from extproc.supervisor.process_specs import program
    from extproc.supervisor.supervisor import up as run
    from memory.cli.prepare import make_ready

    settings = from_process(config, flags)
    program("envoy")  # missing programs are reported before anything slow starts
    make_ready(settings)
    run(settings, announce=_print_line)


def _print_line(line: str) -> None:
    try:
        os.write(sys.stdout.fileno(), line.encode() + b"\n")
    except OSError:
        return  # nobody reads it; the product runs all the same


@memproxy.command()
@_config
@_flags("data_dir", "milvus_uri")
@click.option("--dry-run", "is_dry", is_flag=True, help="Say how many memories, and about how long; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a sentence.")
def reembed(config: Path | None, *, is_dry: bool, as_json: bool, **flags: object) -> None:
    """Embed all memories again, with the model that the settings name now, and use those vectors from then on.

    All other parts must be stopped. If interrupted it loses nothing, and continues when called again.
    """
    from extproc.supervisor.reembed import reembed as run

    run(from_process(config, flags), is_dry=is_dry, as_json=as_json)


@memproxy.command("filter")
@_config
@click.option("--socket", "path", type=click.Path(path_type=Path), required=True, help="Unix socket to serve on.")
def filter_(config: Path | None, path: Path) -> None:
    """Serve Envoy's external processing on a Unix socket: one process, one event loop."""
    from extproc import server

    run_part(partial(server.run, socket_path=path), from_process(config, {}))


@memproxy.command()
@_config
@click.option("--socket", "paths", type=click.Path(path_type=Path), multiple=True, help="A filter's; one for each.")
@click.option("--envoy-concurrency", type=click.IntRange(1), default=1, show_default=True, help="Envoy's threads.")
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, help="Where the bootstrap is written.")
def envoy(config: Path | None, paths: tuple[Path, ...], target: Path, envoy_concurrency: int) -> None:
    """Write Envoy's bootstrap for these settings, then become Envoy: one part alone, for containers."""
    from extproc.supervisor.bootstrap import render
    from extproc.supervisor.process_specs import bootstrap_values, envoy_arguments, program

    settings = from_process(config, {})
    target.write_bytes(render(bootstrap_values(settings, paths)))
    path = program("envoy")
    os.execv(path, [path, *envoy_arguments(target, envoy_concurrency)])  # noqa: S606 - no shell is wanted


@memproxy.command()
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="Port on 127.0.0.1.")
def model(port: int) -> None:
    """Serve the small local chat model, as `up` does without --upstream."""
    from extproc.supervisor.local_model import serve

    serve(port)


for _command in commands.commands.values():
    memproxy.add_command(_command)


def main() -> None:
    """The console script. Exit code 2: the arguments, the settings or the machine do not allow a start."""
    try:
        memproxy()
    except (BadInput, CannotStart) as error:
        _fail(error, BAD_START_CODE)
    except MemproxyError as error:
        _fail(error, 1)


def _fail(error: MemproxyError, code: int) -> None:
    click.echo(f"memproxy: {error}", err=True)
    sys.exit(code)
