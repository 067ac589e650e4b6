"""Looks for strings in the files of a deployment, in the usual encodings, and in the columns of Parquet files.

Reads every file of the folders in pieces, also behind symbolic links: a folder may be on another disk. Each string is
sought as UTF-8, as UTF-16 in both orders, escaped as in JSON, and in base64 (all three alignments). Parquet files are
also opened and their columns of text searched, since Milvus Lite compresses them; gzip files are unpacked. Reports
names of files, never contents.

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
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from memory.errors import Unavailable
from memory.ports.erasures import FILES, PlaceReport

SCAN_SECONDS_MAX = 300.0
PIECE_BYTES = 8 << 20
SEARCHED = "every file of the data and run directories of this machine, with compressed columns"
BASE64_UNSURE = 4  # characters at the ends of base64 that also depend on what stands around


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
            files, size, found = json.loads(output)
        except (TimeoutError, ValueError, TypeError):
            raise Unavailable("files", "they could not be read") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return PlaceReport(FILES, SEARCHED, files, size, tuple(found))


def scanned(places: Sequence[Path], wanted: Sequence[str]) -> tuple[int, int, list[str]]:
    """The number of files, their bytes, and the names of those that hold one of these strings.

    Files that vanish meanwhile are left out.
    """
    needles = [form for text in wanted for form in forms_of(text)]
    files, size, found = 0, 0, []
    for place in places:
        for path in sorted(_files(place)):
            with suppress(FileNotFoundError):
                files, size = files + 1, size + path.stat().st_size
                if _holds(path, needles, wanted):
                    found.append(path.name if path == place else str(path.relative_to(place)))
    return files, size, found


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


def _files(place: Path) -> Iterator[Path]:
    """Each once, though links may lead in circles. A folder that may not be read raises: nobody knows what is in it."""
    seen, waiting = set[Path](), [place]
    while waiting:
        path = waiting.pop()
        is_file = path.is_file()
        if not (is_file or path.is_dir()) or (real := path.resolve()) in seen:
            continue
        seen.add(real)
        if is_file:
            yield path
            continue
        with suppress(FileNotFoundError):  # it vanished meanwhile
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
    """JSON `{places, wanted}` on the standard input; JSON `[files, bytes, found_in]` on the standard output."""
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(scanned([Path(place) for place in asked["places"]], asked["wanted"])))


if __name__ == "__main__":
    main()

__all__ = ["FolderScan", "forms_of", "scanned"]
