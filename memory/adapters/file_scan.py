"""Looks for an id in the files of a deployment: in the rows of databases of SQLite, in the columns of Parquet and Arrow
files, which Milvus Lite writes, in what gzip files hold, and in the bytes of all others.

Reads every file of the folders, also behind symbolic links: a folder may be on another disk. Reports names of files,
never contents, and names what cannot be read, such as `lost+found` on a disk of its own. Must not run in a process that
has a database of SQLite open: closing a file of its would release the process's locks on it.
"""

from __future__ import annotations

import errno
import gzip
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from memory.adapters.whole_ids import WholeId
from memory.model.erasures import PlaceReport
from memory.recall.ranking.snapshot import MAGIC as SNAPSHOT

FILES = "files"
SEARCHED = "every file of the data directory, with rows of SQLite and compressed columns"
SQLITE = b"SQLite format 3\0"
UNREAD_NAMED_MAX = 20  # files and folders that cannot be read; more are counted


def files_scanned(places: Sequence[Path], wanted: WholeId) -> PlaceReport:
    """Looks into these folders and files. Files that vanish meanwhile are left out."""
    files, found, unread = 0, list[str](), _Unread()
    for place in places:
        for path in sorted(_files(place, unread)):
            with unread.named(path, place):
                found += [_name(path, place)] if _holds(path, wanted) else []
                files += 1
    return PlaceReport(FILES, SEARCHED, files, tuple(found), tuple(unread.report()))


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
        except sqlite3.Error as error:
            self._reasons.append(f"{_name(path, place)}: {error}")

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


def _holds(path: Path, wanted: WholeId) -> bool:
    match path.suffix:
        case ".parquet" | ".arrow":
            return any(map(wanted.is_in, _columns(path)))
        case ".gz":
            with suppress(gzip.BadGzipFile, EOFError, zlib.error), gzip.open(path, "rb") as unpacked:
                return wanted.is_in_file(unpacked)  # type: ignore[arg-type]  # it reads as any other
    with path.open("rb") as file:
        begins = file.read(len(SNAPSHOT))
        file.seek(0)
        if wanted.is_in(file.read()) if begins == SNAPSHOT else wanted.is_in_file(file):
            return True
    return begins.startswith(SQLITE) and any(map(wanted.is_in, _rows(path)))


def _rows(path: Path) -> Iterator[object]:
    """The values of all rows, also of those that are in the log only."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table.decode()}"'):  # noqa: S608 - its own tables
                yield from row


def _columns(path: Path) -> Iterator[object]:
    """The values of all columns of text or bytes. Of a log that is being written, what is whole."""
    import pyarrow as pa  # here: only Milvus Lite's files need it
    import pyarrow.parquet as pq

    try:
        batches: Iterable[Any] = (
            pq.ParquetFile(path).iter_batches()
            if path.suffix == ".parquet"
            else pa.ipc.open_stream(pa.OSFile(str(path)))
        )
        for batch in batches:
            for column in batch.columns:
                if not (pa.types.is_nested(column.type) or pa.types.is_primitive(column.type)):
                    yield from column.to_pylist()
    except pa.ArrowInvalid:
        if path.suffix == ".parquet":  # of a server that was killed
            raise OSError(errno.EBADMSG, "it is not whole") from None
