"""`memproxy export` and `memproxy import`: a user's memories as a file, and back; and the stores of other systems.

Files are written and read as the REST API gives and takes them; what is in them is the API's business.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from typer import Argument, BadParameter, Option, echo

from memory.cli.bootstrap import StoringOptions, store
from memory.cli.options import ApiOptions
from memory.cli.output import print_json, progress_bar
from memory.errors import BadInput, MemproxyError, Unavailable
from memory.settings.loader import from_process

if TYPE_CHECKING:
    from memory.cli.memory_rows import MemoryRow, RowProblems

LINES_PER_CALL_MAX = 200
BYTES_PER_CALL_MAX = 1_000_000  # the API takes less than 1 MiB
JSON_LINES = "application/x-ndjson"
MEM0_LIMITS = (20, 100)  # of `get_all()`, by release
ROUTER_ROWS_MAX = 500_000  # all are checked before any is stored, in about 1 GiB
ROUTER_COLLECTION = "agentic_memory"  # as the router calls it unless told otherwise


def export(
    options: ApiOptions,
    *,
    output: Annotated[Path | None, Option("--output", "-o", help="The file. [default: standard output]")] = None,
) -> None:
    """Write all memories of a user as JSON Lines, which `memproxy import` reads.

    A file appears, or replaces another, only when it is complete. With --output, --json prints the counts.
    """
    if output is None:
        _copy(options, sys.stdout.buffer)
        return
    with _replacing(output) as target:
        lines, size = _copy(options, target)
    if options.as_json:
        print_json({"output": str(output), "memories": lines, "bytes": size})
    else:
        echo(f"exported: {lines} memories, {size} bytes", err=True)


def _copy(options: ApiOptions, target: IO[bytes]) -> tuple[int, int]:
    """The lines and bytes that were written."""
    import httpx

    from memory.cli.api_client import answer_of

    lines = size = 0
    try:
        with (
            options.client() as client,
            progress_bar("memories") as advance,
            client.stream("GET", "/v1/memory/export") as response,
        ):
            if not response.is_success:
                response.read()
                answer_of(response)
            for piece in response.iter_bytes():
                target.write(piece)
                lines, size = lines + piece.count(b"\n"), size + len(piece)
                advance(lines, None)
    except httpx.TransportError as error:
        raise Unavailable(
            "the REST API", f"it broke off after {lines} memories: {error or type(error).__name__}"
        ) from None
    target.flush()
    return lines, size


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file next to `path` that takes its place when everything is on disk, and vanishes otherwise."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as target:
            try:
                yield target
                os.fsync(target.fileno())
                Path(target.name).replace(path)
            finally:
                Path(target.name).unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from error


def import_(
    storing: StoringOptions,
    *,
    path: Annotated[Path | None, Argument(exists=True, dir_okay=False, readable=True, help="The file.")] = None,
    source: Annotated[
        Literal["memproxy", "mem0", "semantic-router"],
        Option(
            "--from", help="Who wrote it. mem0: the JSON of Memory.get_all(); semantic-router: a Milvus collection."
        ),
    ] = "memproxy",
    user: Annotated[str, Option(help="Whose memories; of mem0 and semantic-router: only theirs. [default: all]")] = "",
    milvus_uri: Annotated[str, Option(help="The router's Milvus; for --from semantic-router.")] = "",
    collection: Annotated[str, Option(help="The router's collection.")] = ROUTER_COLLECTION,
) -> None:
    """Store what `memproxy export` wrote, or what mem0 or vLLM Semantic Router remember.

    Running it again goes on where it stopped: nothing is stored twice.
    """
    if (source == "semantic-router") != bool(milvus_uri) or (source == "semantic-router") == (path is not None):
        raise BadParameter("give a file, or --from semantic-router with --milvus-uri and no file")
    if source == "memproxy":
        if not user:
            raise BadParameter("say whose memories they become: --user")
        assert path is not None, "checked above"
        _import_own(path, user, storing)
        return
    _import_foreign(path, user, (milvus_uri, collection), storing)


def _import_own(path: Path, user: str, storing: StoringOptions) -> None:
    from memory.cli.api_client import answer_of, api_client, stopped_by

    totals, size = {"stored": 0, "present": 0, "forgotten": 0}, path.stat().st_size
    count = sum(len(lines) for lines in _batches(path))  # refuses a wrong line before the first is sent
    if storing.is_dry:
        _print(storing, {"is_dry_run": True, "valid": count}, f"valid: {count}")
        return
    with api_client(storing.config, storing.api, user) as client, progress_bar("bytes", total=size) as advance:
        done, header = 0, b""
        for lines in _batches(path):
            body = b"".join(lines)
            sent = header.lstrip() + body  # each call is a file of its own
            header = header or (lines[0] if b'"memproxy-export"' in lines[0] else b"\n")
            try:
                answer = answer_of(client.post("/v1/memory/import", content=sent, headers={"content-type": JSON_LINES}))
            except MemproxyError as error:
                raise stopped_by(error, totals["stored"]) from None
            totals = {name: count + int(answer[name]) for name, count in totals.items()}
            done += len(body)
            advance(done, size)
    _print(storing, totals, ", ".join(f"{name}: {count}" for name, count in totals.items()))


def _print(storing: StoringOptions, counts: Mapping[str, object], sentence: str) -> None:
    if storing.as_json:
        print_json(counts)
    else:
        echo(sentence)


def _batches(path: Path) -> Iterator[list[bytes]]:
    """Lines as single calls can take them. Raises `BadInput` for a line that is none of an export."""
    import msgspec

    batch: list[bytes] = []
    size = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError as error:
                raise BadInput(f"line {number} of {path.name} is not a JSON object: {error}") from None
            whole = line if line.endswith(b"\n") else line + b"\n"
            if len(whole) > BYTES_PER_CALL_MAX:
                raise BadInput(f"line {number} of {path.name} has more than {BYTES_PER_CALL_MAX} bytes")
            if batch and (len(batch) == LINES_PER_CALL_MAX or size + len(whole) > BYTES_PER_CALL_MAX):
                yield batch
                batch, size = [], 0
            batch.append(whole)
            size += len(whole)
    if batch:
        yield batch


def _import_foreign(path: Path | None, user: str, router: tuple[str, str], storing: StoringOptions) -> None:
    from memory.cli.foreign_rows import mem0_rows
    from memory.cli.memory_rows import RowProblems, checked
    from memory.processes.composition import SYSTEM_CLOCK
    from memory.runtime.logs import log_to_stderr

    log_to_stderr(from_process(storing.config, {}).log_format)
    problems = RowProblems()
    if path is not None:
        rows: Iterator[MemoryRow] = mem0_rows(path.read_bytes(), problems, user_id=user)
    else:
        rows = asyncio.run(_router_memories(*router, user, problems))
    found = list(checked(rows, problems, now=SYSTEM_CLOCK()))
    problems.refuse()
    if path is not None and len(found) in MEM0_LIMITS:
        echo(
            f"warning: mem0 gives {len(found)} memories unless its get_all() is told top_k; there may be more", err=True
        )
    store(found, storing)


async def _router_memories(uri: str, collection: str, user: str, problems: RowProblems) -> Iterator[MemoryRow]:
    from prometheus_client import CollectorRegistry

    from memory.adapters.milvus.router_collection import RouterRow, router_rows
    from memory.cli.foreign_rows import router_memory_rows
    from memory.runtime.metrics import Metrics

    stored: list[RouterRow] = []
    async for page in router_rows(uri, collection, user_id=user, metrics=Metrics(CollectorRegistry())):
        stored += page
        if len(stored) > ROUTER_ROWS_MAX:
            raise BadInput(f"{collection} has more than {ROUTER_ROWS_MAX} memories: import user by user, with --user")
    return router_memory_rows(stored, problems)


__all__ = ["export", "import_"]
