"""`memproxy export` and `memproxy import`: a user's memories as a file, and back; and the stores of other systems.

Files are written and read as the REST API gives and takes them; what is in them is the API's business.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from typer import Argument, BadParameter, Option, echo

from memory.cli.bootstrap import StoringOptions, store
from memory.cli.options import ApiOptions
from memory.cli.output import print_json, print_result, progress_bar
from memory.errors import BadInput, MemproxyError, Unavailable
from memory.settings.loader import from_process
from memory.typed import from_json

if TYPE_CHECKING:
    from memory.cli.memory_rows import MemoryRow, RowProblems

JSON_LINES = "application/x-ndjson"
MEMORY_LINE = b'{"kind":"memory",'  # as the API writes it
# by the API, in each call of an import
COUNTED = ("stored", "present", "forgotten", "profiles", "turns", "messages", "raw_words")
LINES_PER_CALL_MAX = 200
BYTES_PER_CALL_MAX = 1_000_000  # of several lines; a longer one goes by itself
LINE_BYTES_MAX = 16 << 20  # as the API takes it
HEADER_BYTES_MAX = 4_096
_HEADER_KIND = b'"memproxy-export"'
MEM0_LIMITS = (20, 100)  # of `get_all()`, by release
ROUTER_ROWS_MAX = 500_000  # all are checked before any is stored, in about 1 GiB
ROUTER_COLLECTION = "agentic_memory"  # as the router calls it unless told otherwise


def export(
    options: ApiOptions,
    *,
    output: Annotated[Path | None, Option("--output", "-o", help="The file. [default: standard output]")] = None,
    no_record: Annotated[bool, Option("--no-record", help="Leave out the conversation record.")] = False,
    project: Annotated[str, Option(help="Only what is in this project.")] = "",
) -> None:
    """Write everything of a user as JSON Lines, which `memproxy import` reads: memories, profiles, conversations.

    A file appears, or replaces another, only when it is complete. With --output, --json prints the counts.
    """
    wanted = {"record": "false" if no_record else "true"} | ({"project_id": project} if project else {})
    if output is None:
        _copy(options, sys.stdout.buffer, wanted)
        return
    with _replacing(output) as target:
        memories, size = _copy(options, target, wanted)
    if options.as_json:
        print_json({"output": str(output), "memories": memories, "bytes": size})
    else:
        echo(f"exported: {memories} memories, {size} bytes", err=True)


def _copy(options: ApiOptions, target: IO[bytes], wanted: Mapping[str, str]) -> tuple[int, int]:
    """`wanted`: parameters of the call. The memories and bytes that were written."""
    import httpx

    from memory.cli.api_client import answer_of

    memories = size = 0
    end = b""
    try:
        with (
            options.client() as client,
            progress_bar("memories") as advance,
            client.stream("GET", "/v1/memory/export", params=dict(wanted)) as response,
        ):
            if not response.is_success:
                response.read()
                answer_of(response)
            for piece in response.iter_bytes():
                target.write(piece)
                *lines, end = (end + piece).split(b"\n")
                memories, size = memories + sum(line.startswith(MEMORY_LINE) for line in lines), size + len(piece)
                advance(memories, None)
    except httpx.TransportError as error:
        raise Unavailable(
            "the REST API", f"it broke off after {memories} memories: {error or type(error).__name__}"
        ) from None
    target.flush()
    return memories, size


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

    header, size = header_of(path), path.stat().st_size
    count = sum(len(line) > 1 for batch in line_batches(path) for line in batch.lines)  # refuses before it sends
    if storing.is_dry:
        print_result({"is_dry_run": True, "valid": count}, f"valid: {count}", as_json=storing.as_json)
        return
    totals, unread, done = Counter[str](dict.fromkeys(COUNTED, 0)), Counter[str](), 0
    with api_client(storing.config, storing.api, user) as client, progress_bar("bytes", total=size) as advance:
        for batch in line_batches(path):
            body = b"".join((header, *batch.lines))  # each call is a file of its own
            where = {"first_line": str(batch.first_line)}
            try:
                answer = answer_of(
                    client.post("/v1/memory/import", params=where, content=body, headers={"content-type": JSON_LINES})
                )
            except MemproxyError as error:
                raise stopped_by(error, totals["stored"]) from None
            totals.update({name: int(answer[name]) for name in COUNTED})
            unread.update(answer["unread"])
            done += len(body) - len(header)
            advance(done, size)
    sentence = ", ".join(f"{name}: {count}" for name, count in totals.items())
    kinds = ", ".join(f"{count} of {kind!r}" for kind, count in unread.items()) or "none"
    said = f"{sentence}; lines that were not read: {kinds}"
    print_result({**totals, "unread": unread}, said, as_json=storing.as_json)


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

    from memory.adapters.milvus.ordered_rows import RouterRow, router_rows
    from memory.cli.foreign_rows import router_memory_rows
    from memory.processes.from_settings import milvus_access
    from memory.runtime.metrics import Metrics

    stored: list[RouterRow] = []
    access, metrics = milvus_access(from_process(None, {})), Metrics(CollectorRegistry())
    async for page in router_rows(uri, collection, user_id=user, metrics=metrics, access=access):
        stored += page
        if len(stored) > ROUTER_ROWS_MAX:
            raise BadInput(f"{collection} has more than {ROUTER_ROWS_MAX} memories: import user by user, with --user")
    return router_memory_rows(stored, problems)


# The file that `memproxy export` wrote, in batches that single calls of the API can take


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Lines with their ends, empty ones too. `first_line`: the number of the first in the file."""

    first_line: int
    lines: tuple[bytes, ...]


def header_of(path: Path) -> bytes:
    """The file's first line, which every call repeats. Raises `BadInput` if it is none of an export."""
    with path.open("rb") as lines:
        header = lines.readline(HEADER_BYTES_MAX)
    if _HEADER_KIND not in header:
        raise BadInput(f"line 1 of {path.name} is not the line that an export begins with")
    return header.rstrip(b"\r\n") + b"\n"


def line_batches(path: Path) -> Iterator[LineBatch]:
    """All lines after the header. Raises `BadInput` for a line that is none of an export."""
    from memory.ports.paging import sized_batches

    first = 2
    with path.open("rb") as lines:
        next(lines, None)
        whole = (_checked(line, number, path.name) for number, line in enumerate(lines, start=first))
        for batch in sized_batches(whole, len, items_max=LINES_PER_CALL_MAX, size_max=BYTES_PER_CALL_MAX):
            yield LineBatch(first, tuple(batch))
            first += len(batch)
    if first == 2:
        yield LineBatch(first, ())


def _checked(line: bytes, number: int, name: str) -> bytes:
    """The line with its end."""
    import msgspec

    if not line.strip():
        return b"\n"
    try:
        from_json(line, dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise BadInput(f"line {number} of {name} is not a JSON object: {error}") from None
    if len(line) > LINE_BYTES_MAX:
        raise BadInput(f"line {number} of {name} has more than {LINE_BYTES_MAX} bytes")
    return line if line.endswith(b"\n") else line + b"\n"
