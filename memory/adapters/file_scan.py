"""Looks for strings in the files of a deployment, in the usual encodings, and in the columns of Parquet files.

Reads every file of the folders in pieces, also behind symbolic links: a folder may be on another disk. Each string is
sought as UTF-8, as UTF-16 in both orders, escaped as in JSON, and in base64 (all three alignments). Parquet files are
also opened and their columns of text searched, since Milvus Lite compresses them; gzip files are unpacked. Reports
names of files, never contents, and names what cannot be read, such as `lost+found` on a disk of its own.

It runs in a process of its own: closing a file of SQLite's would release the locks that this process has on it. The
strings reach it by its standard input, since anybody can read command lines.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import sys
import zlib
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from memory.errors import Unavailable
from memory.ports.erasures import FILES, PlaceReport

SCAN_SECONDS_MAX = 300.0
PIECE_BYTES = 8 << 20
SEARCHED = "every file of the data and run directories of this machine, with compressed columns"
BASE64_UNSURE = 4  # characters at the ends of base64 that also depend on what stands around
UNREAD_NAMED_MAX = 20  # files and folders that cannot be read; more are counted


class Scanned(NamedTuple):
    """Numbers of files that were read, and of their bytes; names of those that hold what was sought.

    `not_searched`: names of files and folders that could not be read, and why.
    """

    files: int
    bytes: int
    found_in: Sequence[str]
    not_searched: Sequence[str]


class FolderScan:
    """`memory.ports.erasures.PlaceScan` of some folders and files."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)

    async def scan(self, wanted: Sequence[str]) -> PlaceReport:
        asked = json.dumps({"places": list(map(str, self._places)), "wanted": list(wanted)}).encode()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memory.adapters.file_scan"), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
        try:
            async with asyncio.timeout(SCAN_SECONDS_MAX):
                output, _ = await process.communicate(asked)
            found = Scanned(*json.loads(output))
        except (TimeoutError, ValueError, TypeError):
            raise Unavailable("files", "they could not be read") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return PlaceReport(FILES, SEARCHED, found.files, found.bytes, tuple(found.found_in), tuple(found.not_searched))


def scanned(places: Sequence[Path], wanted: Sequence[str]) -> Scanned:
    """Looks for these strings in these folders and files. Files that vanish meanwhile are left out."""
    needles = [form for text in wanted for form in forms_of(text)]
    files, size, found, unread = 0, 0, list[str](), _Unread()
    for place in places:
        for path in sorted(_files(place, unread)):
            with unread.named(path, place):
                bytes_of_it, holds = path.stat().st_size, _holds(path, needles, wanted)
                files, size = files + 1, size + bytes_of_it
                if holds:
                    found.append(_name(path, place))
    return Scanned(files, size, found, unread.report())


def forms_of(text: str) -> list[bytes]:
    """The bytes by which a file may hold this text."""
    plain = text.encode("utf-8", "surrogatepass")
    forms = [plain, text.encode("utf-16-le", "surrogatepass"), text.encode("utf-16-be", "surrogatepass")]
    forms.append(json.dumps(text)[1:-1].encode())
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + plain).rstrip(b"=")
        certain = coded[BASE64_UNSURE if before else 0 : -2]
        if len(certain) > BASE64_UNSURE:
            forms.append(certain)
    return list(dict.fromkeys(forms))


class _Unread:
    """Collects what cannot be read. What vanished meanwhile holds nothing, and is left out."""

    def __init__(self) -> None:
        self._reasons: list[str] = []

    @contextmanager
    def named(self, path: Path, place: Path) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            return
        except OSError as error:
            self._reasons.append(f"{_name(path, place)}: {error.strerror or type(error).__name__}")

    def report(self) -> list[str]:
        named, more = sorted(self._reasons)[:UNREAD_NAMED_MAX], len(self._reasons) - UNREAD_NAMED_MAX
        return [*named, f"{more} more files and folders"] if more > 0 else named


def _name(path: Path, place: Path) -> str:
    return path.name if path == place else str(path.relative_to(place))


def _files(place: Path, unread: _Unread) -> Iterator[Path]:
    """Each once, though links may lead in circles."""
    seen, waiting = set[Path](), [place]
    while waiting:
        path = waiting.pop()
        with unread.named(path, place):
            is_file = path.is_file()
            if not (is_file or path.is_dir()) or (real := path.resolve()) in seen:
                continue
            seen.add(real)
            if is_file:
                yield path
            else:
                waiting += path.iterdir()


def _holds(path: Path, needles: Sequence[bytes], wanted: Sequence[str]) -> bool:
    with path.open("rb") as file:
        if _stream_holds(file, needles):
            return True
    inside: dict[str, Callable[[], bool]] = {
        ".parquet": lambda: _columns_hold(path, wanted),
        ".gz": lambda: _unpacked_holds(path, needles),
    }
    return path.suffix in inside and inside[path.suffix]()


def _stream_holds(file: BinaryIO, needles: Sequence[bytes]) -> bool:
    overlap = max(map(len, needles), default=1) - 1
    kept = b""
    while piece := file.read(PIECE_BYTES):
        piece = kept + piece
        if any(needle in piece for needle in needles):
            return True
        kept = piece[len(piece) - overlap :] if overlap else b""
    return False


def _unpacked_holds(path: Path, needles: Sequence[bytes]) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            return _stream_holds(file, needles)  # type: ignore[arg-type]  # it reads as any other
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return False


def _columns_hold(path: Path, wanted: Sequence[str]) -> bool:
    import pyarrow as pa  # here: only Milvus Lite's files need it
    import pyarrow.parquet as pq

    try:
        opened = pq.ParquetFile(path)
        batches = opened.iter_batches()
        return any(
            text in str(value)
            for batch in batches
            for column in batch.columns
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            for value in column.to_pylist()
            for text in wanted
        )
    except pa.ArrowInvalid:  # of a server that was killed
        return False


def main() -> None:
    """JSON `{places, wanted}` on the standard input; `Scanned` as a JSON list on the standard output."""
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(scanned([Path(place) for place in asked["places"]], asked["wanted"])))


if __name__ == "__main__":
    main()
