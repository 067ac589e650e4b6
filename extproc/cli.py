"""The console script `memproxy`: the whole product with `up`, its parts one by one, and the operator's tools.

Parses arguments and calls. What one command needs is imported when that command runs, so that a filter restarts quickly
after a crash.
"""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Context, Exit, Option, Typer, echo

from extproc.supervisor.locks_and_ports import CannotStart
from memory.cli.main import commands, run_part, settings_at_start
from memory.cli.options import OPERATION, PARTS, STYLE, THE_PRODUCT, ConfigOption, JsonOption, command, with_parameters
from memory.cli.output import print_json
from memory.errors import BadInput, BadSetting, MemproxyError
from memory.settings import SettingDoc, Settings, every_setting
from memory.settings.loader import from_process

if TYPE_CHECKING:
    from memory.processes.findings import Finding

BAD_START_CODE = 2  # as the parser's own for invalid arguments: a restart will not help
UP_FLAGS = (
    "upstream host port api_port envoy_admin_port milvus_port metrics_port milvus_uri database_url identity "
    "trusted_peers data_dir filters workers ports_file log_format"
).split()


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

    settings = settings_at_start(config, flags)
    program("envoy")  # missing programs are reported before anything slow starts
    make_ready(settings)
    run(settings, announce=_print_line)


def _print_line(line: str) -> None:
    try:
        os.write(sys.stdout.fileno(), line.encode() + b"\n")
    except OSError:
        return  # nobody reads it; the product runs all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineOptions:
    """The options of the commands that rewrite what is stored while nothing else runs."""

    config: ConfigOption = None
    is_dry: Annotated[bool, Option("--dry-run", help="Say how much there is to do; change nothing.")] = False
    as_json: JsonOption = False


@command(memproxy, panel=OPERATION)
@with_parameters(_flags("data_dir", "milvus_uri"))
def reembed(options: OfflineOptions, **flags: Any) -> None:  # noqa: ANN401 - the settings, by name
    """Embed all memories again, with the model that the settings name now, and use those vectors from then on.

    All other parts must be stopped. If interrupted it loses nothing, and continues when called again.
    """
    from extproc.supervisor.offline import reembed as run

    run(from_process(options.config, flags), is_dry=options.is_dry, as_json=options.as_json)


@command(memproxy, panel=OPERATION)
@with_parameters(_flags("data_dir", "milvus_uri", "database_url"))
def migrate(options: OfflineOptions, **flags: Any) -> None:  # noqa: ANN401 - the settings, by name
    """Bring the tables on PostgreSQL to this version, and copy all memories into a new collection if theirs is old.

    It is if the schema is outdated, or the index was made for fewer memories. The new one is used from then on.

    All other parts must be stopped. If interrupted it loses nothing, and continues when called again.
    """
    from extproc.supervisor.offline import migrate as run

    run(from_process(options.config, flags), is_dry=options.is_dry, as_json=options.as_json)


@command(memproxy, panel=OPERATION)
@with_parameters(_flags("data_dir", "milvus_uri", "database_url"))
def compact(options: OfflineOptions, **flags: Any) -> None:  # noqa: ANN401 - the settings, by name
    """Write all files anew that hold bytes of deleted rows, also those too large for it while memproxy runs.

    All other parts must be stopped. If interrupted it loses nothing, and may be called again.
    """
    from extproc.supervisor.offline import compact as run

    run(from_process(options.config, flags), is_dry=options.is_dry, as_json=options.as_json)


@command(memproxy, "filter", panel=PARTS)
def filter_(
    *,
    config: ConfigOption = None,
    path: Annotated[Path | None, Option("--socket", help="Unix socket to serve on.")] = None,
    listen: Annotated[str, Option(help="HOST:PORT to serve on instead, for Envoy on another host.")] = "",
    is_open: Annotated[
        bool, Option("--without-secret", help="Believe whoever calls: only where nobody but Envoy can reach it.")
    ] = False,
) -> None:
    """Serve Envoy's external processing: one process, one event loop, one endpoint of Envoy's.

    Beyond this machine, calls need the secret that Envoy brings (`MEMPROXY_EDGE_SECRET`, the same for both).
    """
    from extproc import server
    from extproc.addresses import HostAndPort, checked_listener, unix_target
    from extproc.identity import IdentityMode

    settings = settings_at_start(config, {})
    if (path is None) == (not listen):
        raise BadSetting("a filter listens either on --socket PATH or on --listen HOST:PORT")
    if path is not None:
        run_part(partial(server.run, target=unix_target(path)), settings)
        return
    secret = "" if is_open else settings.edge_secret
    needed = "none" if is_open else secret
    listener = checked_listener(HostAndPort.parsed(listen), IdentityMode(settings.identity), needed)
    run_part(partial(server.run, target=listener.target, secret=secret), settings)


@command(memproxy, panel=PARTS)
def envoy(
    *,
    config: ConfigOption = None,
    paths: Annotated[list[Path] | None, Option("--socket", help="A filter's; one for each.")] = None,
    addresses: Annotated[
        list[str] | None, Option("--filter", help="HOST:PORT of a filter, one for each. A name may stand for many.")
    ] = None,
    envoy_concurrency: Annotated[int, Option(min=1, help="Envoy's threads.")] = 1,
    target: Annotated[Path, Option("--to", help="Where the bootstrap is written.")],
) -> None:
    """Write Envoy's bootstrap for these settings, then become Envoy: one part alone, for containers."""
    from extproc.addresses import HostAndPort
    from extproc.supervisor.bootstrap import EnvoyPlan, render
    from extproc.supervisor.process_specs import envoy_arguments, program

    settings = settings_at_start(config, {})
    remote = tuple(map(HostAndPort.parsed, addresses or ()))
    target.write_bytes(render(EnvoyPlan(settings, tuple(paths or ()), remote)))
    path = program("envoy")
    os.execv(path, [path, *envoy_arguments(target, envoy_concurrency)])  # noqa: S606 - no shell is wanted


@command(memproxy, panel=PARTS)
def model(
    *,
    host: Annotated[str, Option(help="Address to listen on; it has no access control.")] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="Port.")],
) -> None:
    """Serve the small local chat model, as `up` does without --upstream."""
    from extproc.supervisor.local_model import serve

    serve(host, port)


@command(memproxy, "milvus-lite", panel=PARTS)
def milvus_lite(
    server: Annotated[Literal["server"], Argument(metavar="server", help="The only thing that it does.")],
    *,
    data_dir: Annotated[Path, Option(help="Folder of its files; one server at a time.")],
    address: Annotated[
        str, Option(help="unix:PATH, which this user alone may open, or HOST:PORT for everybody on it.")
    ],
) -> None:
    """Serve the embedded store, as `up` does without --milvus-uri."""
    from extproc.supervisor.milvus_lite import serve

    del server  # its type is its check
    serve(data_dir, address)


@command(memproxy, panel=OPERATION)
def probe(
    *, target: Annotated[str, Argument(help="unix:PATH, grpc:HOST:PORT, or a URL.")], as_json: JsonOption = False
) -> None:
    """Ask one part whether it works, for the health checks of containers: exit code 0 if it does, else 1.

    A filter (`unix:`, `grpc:`) works once it has searched, and until it is told to stop.
    """
    import asyncio

    from extproc.supervisor.probes import answers

    works = asyncio.run(answers(target))
    if as_json:
        print_json({"target": target, "works": works})
    sys.exit(not works)


@command(memproxy, panel=OPERATION)
def restart(
    *,
    config: ConfigOption = None,
    data_dir: Annotated[str | None, Option(help="Of the `up` that is to be restarted.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Restart the parts of a running `up`, one after the other, each when the one before works again.

    With two filters or more, no chat fails, and none goes without memory. Envoy goes on.
    """
    from extproc.supervisor.rolling_restart import request_restart

    settings = from_process(config, {"data_dir": data_dir})
    ended = request_restart(Path(settings.data_dir), report=lambda line: echo(line, err=True))
    if as_json:
        print_json(ended)


memproxy.add_typer(commands)


def main() -> None:
    """The console script. Exit code 2: the arguments, the settings or the machine do not allow a start."""
    if isinstance(sys.stdout, TextIOWrapper):  # what users said may have characters that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        memproxy()
    except (BadInput, CannotStart) as error:
        _fail(error, BAD_START_CODE)
    except MemproxyError as error:
        _fail(error, 1)
    except RecursionError:  # whatever file a command reads: parsers follow nesting by recursion
        _fail(BadInput("the input is nested too deeply: JSON and YAML of some hundred levels are read"), BAD_START_CODE)


def _fail(error: MemproxyError, code: int) -> None:
    echo(f"memproxy: {error}", err=True)
    sys.exit(code)
