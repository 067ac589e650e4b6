"""The console script `memproxy`: the whole product with `up`, its parts one by one, and the operator's tools.

Parses arguments and calls. What one command needs is imported when that command runs, so that a filter restarts quickly
after a crash.
"""

from __future__ import annotations

import inspect
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Exit, Option, Typer, echo

from extproc.supervisor.locks_and_ports import CannotStart
from memory.cli.main import commands, run_part
from memory.cli.options import OPERATION, PARTS, STYLE, THE_PRODUCT, ConfigOption, JsonOption, command, with_parameters
from memory.errors import BadInput, MemproxyError
from memory.settings import SettingDoc, Settings, every_setting
from memory.settings.loader import from_process

if TYPE_CHECKING:
    from memory.processes.findings import Finding

BAD_START_CODE = 2  # as the parser's own for invalid arguments: a restart will not help
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


def _flags(*paths: str) -> list[inspect.Parameter]:
    """An option for each of these settings, with the setting's own description."""
    known = {doc.path: doc for doc in every_setting()}
    return [
        inspect.Parameter(
            path,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, Option(f"--{path.replace('_', '-')}", help=_help(known[path]))],
        )
        for path in paths
    ]


def _help(doc: SettingDoc) -> str:
    default = ", ".join(doc.default) if isinstance(doc.default, tuple) else str(doc.default)
    return f"{doc.meaning} [{default or 'none'}; {doc.environment}]"


memproxy = Typer(no_args_is_help=True, **STYLE)


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if is_asked:
        from importlib.metadata import version

        echo(f"memproxy, version {version('memproxy')}")
        raise Exit


async def _startup_findings(settings: Settings) -> list[Finding]:
    from extproc.supervisor.startup_findings import startup_findings

    return await startup_findings(settings)


@memproxy.callback()
def _memproxy(
    context: Context,
    *,
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A transparent memory layer for vLLM behind Envoy: chats that remember their user across sessions."""
    context.obj = _startup_findings


@command(memproxy, panel=THE_PRODUCT)
@with_parameters(_flags(*UP_FLAGS))
def up(*, config: ConfigOption = None, **flags: Any) -> None:  # noqa: ANN401 - the settings, by name
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


@command(memproxy, panel=OPERATION)
@with_parameters(_flags("data_dir", "milvus_uri"))
def reembed(
    *,
    config: ConfigOption = None,
    is_dry: Annotated[
        bool, Option("--dry-run", help="Say how many memories, and about how long; change nothing.")
    ] = False,
    as_json: JsonOption = False,
    **flags: Any,  # noqa: ANN401 - the settings, by name
) -> None:
    """Embed all memories again, with the model that the settings name now, and use those vectors from then on.

    All other parts must be stopped. If interrupted it loses nothing, and continues when called again.
    """
    from extproc.supervisor.reembed import reembed as run

    run(from_process(config, flags), is_dry=is_dry, as_json=as_json)


@command(memproxy, "filter", panel=PARTS)
def filter_(
    *,
    config: ConfigOption = None,
    path: Annotated[Path, Option("--socket", help="Unix socket to serve on.")],
) -> None:
    """Serve Envoy's external processing on a Unix socket: one process, one event loop."""
    from extproc import server

    run_part(partial(server.run, socket_path=path), from_process(config, {}))


@command(memproxy, panel=PARTS)
def envoy(
    *,
    config: ConfigOption = None,
    paths: Annotated[list[Path] | None, Option("--socket", help="A filter's; one for each.")] = None,
    envoy_concurrency: Annotated[int, Option(min=1, help="Envoy's threads.")] = 1,
    target: Annotated[Path, Option("--to", help="Where the bootstrap is written.")],
) -> None:
    """Write Envoy's bootstrap for these settings, then become Envoy: one part alone, for containers."""
    from extproc.supervisor.bootstrap import render
    from extproc.supervisor.process_specs import bootstrap_values, envoy_arguments, program

    settings = from_process(config, {})
    target.write_bytes(render(bootstrap_values(settings, tuple(paths or ()))))
    path = program("envoy")
    os.execv(path, [path, *envoy_arguments(target, envoy_concurrency)])  # noqa: S606 - no shell is wanted


@command(memproxy, panel=PARTS)
def model(*, port: Annotated[int, Option(min=1, max=65535, help="Port on 127.0.0.1.")]) -> None:
    """Serve the small local chat model, as `up` does without --upstream."""
    from extproc.supervisor.local_model import serve

    serve(port)


memproxy.add_typer(commands)


def main() -> None:
    """The console script. Exit code 2: the arguments, the settings or the machine do not allow a start."""
    try:
        memproxy()
    except (BadInput, CannotStart) as error:
        _fail(error, BAD_START_CODE)
    except MemproxyError as error:
        _fail(error, 1)


def _fail(error: MemproxyError, code: int) -> None:
    echo(f"memproxy: {error}", err=True)
    sys.exit(code)
