"""The endpoints of operators: requests, queue, dead letters and health of all users, without any text of theirs.

They need a service token with the scope `operate`; in identity mode `development` anybody may call them.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeAlias

import msgspec
from litestar import Controller, get, post
from litestar.params import FromQuery, JSONBody, QueryParameter

from memory.api.operations import OPERATES, PathId, TheLibrary, operation
from memory.api.times import TimeText, time_text
from memory.api.views import view_of
from memory.errors import NotFound
from memory.model import CandidateVerdict, RecallStatus, Receipt
from memory.model.evaluation_reports import ReportHead

PAGE_REQUESTS_MAX = 200
DEAD_LETTERS_MAX = 500
RequestLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=PAGE_REQUESTS_MAX)]
REPORTS_MAX = 100
ReportLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=REPORTS_MAX)]
LetterLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=DEAD_LETTERS_MAX)]


class TracedRequestView(msgspec.Struct, frozen=True):
    """`verdicts`: how many candidates got each; `memories` and `tokens`: of the notes; milliseconds by stage."""

    receipt_id: str
    user_id: str
    created_at: TimeText
    status: RecallStatus
    reason: str
    memories: int
    tokens: int
    verdicts: dict[CandidateVerdict, int]
    timings_ms: dict[str, float]


class TracedRequestsView(msgspec.Struct, frozen=True):
    """`next_cursor`: to be passed as `cursor`; null after the last page."""

    requests: list[TracedRequestView]
    next_cursor: str | None


class QueueView(msgspec.Struct, frozen=True):
    """Turns by their state. `oldest_seconds`: the age of the oldest that is finished and not learnt."""

    opened: int
    due: int
    leased: int
    retrying: int
    dead: int
    shed: int
    oldest_seconds: float


class DeadLetterView(msgspec.Struct, frozen=True):
    """A window of turns that was given up, or (attempts 0) shed."""

    id: str
    user_id: str
    session_id: str
    turns: int
    reason: str
    buried_at: TimeText
    attempts: int


class DeadLettersView(msgspec.Struct, frozen=True):
    """Oldest first."""

    dead_letters: list[DeadLetterView]


class LettersBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The ids of dead letters."""

    ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=DEAD_LETTERS_MAX)]


class ReplayedLetters(msgspec.Struct, frozen=True):
    replayed: int


class DroppedLetters(msgspec.Struct, frozen=True):
    dropped: int


class ReportView(msgspec.Struct, frozen=True):
    """`evaluation`: which command of `memproxy eval`; `file`: the name of its records; `version`: of memproxy."""

    name: str
    evaluation: str
    file: str
    version: str
    created_at: TimeText


class ReportsView(msgspec.Struct, frozen=True):
    """`next_cursor`: to be passed as `cursor`; null after the last page."""

    reports: list[ReportView]
    next_cursor: str | None


class ReportTableView(msgspec.Struct, frozen=True):
    """Figures as they are shown; each row has a cell for each column."""

    columns: list[str]
    rows: list[list[str]]


class WholeReportView(msgspec.Struct, frozen=True):
    report: ReportView
    tables: list[ReportTableView]


class PartView(msgspec.Struct, frozen=True):
    """`ok`: null if nothing is known of it from here. `reason`: why it does not work; null if it does. `running`: how
    many processes of it, of `expected`; null where they are not counted.
    """

    part: str
    ok: bool | None
    reason: str | None
    running: int | None
    expected: int | None


class HealthOfParts(msgspec.Struct, frozen=True):
    parts: list[PartView]


class OperatorController(Controller):
    path = "/v1/memory/operator"
    tags = ("operator",)

    @operation(get, "/requests", "listRequests", allowed=OPERATES)
    async def requests(
        self, library: TheLibrary, limit: RequestLimit = 50, cursor: FromQuery[str] = ""
    ) -> TracedRequestsView:
        """The requests of all users that have a receipt, latest first; without any text."""
        page = await library.operator.requests(limit=limit, cursor=cursor)
        return TracedRequestsView(list(map(request_view, page.items)), page.next_cursor or None)

    @operation(get, "/queue", "getQueue", allowed=OPERATES)
    async def queue(self, library: TheLibrary) -> QueueView:
        """How many turns wait to be learnt, and for how long."""
        return view_of(QueueView, await library.operator.queue())

    @operation(get, "/dead-letters", "listDeadLetters", allowed=OPERATES)
    async def dead_letters(self, library: TheLibrary, limit: LetterLimit = 100) -> DeadLettersView:
        """Windows of turns that were given up or shed, oldest first; their turns stay in the record."""
        letters = await library.operator.dead_letters(limit=limit)
        return DeadLettersView(
            [view_of(DeadLetterView, one, id=one.window_id, turns=len(one.turn_ids)) for one in letters]
        )

    @operation(post, "/dead-letters/replay", "replayDeadLetters", allowed=OPERATES)
    async def replay(self, library: TheLibrary, data: JSONBody[LettersBody]) -> ReplayedLetters:
        """Learns these dead letters again, as their first attempt; ids that are none are ignored."""
        return ReplayedLetters(await library.operator.replay(data.ids))

    @operation(post, "/dead-letters/drop", "dropDeadLetters", allowed=OPERATES)
    async def drop(self, library: TheLibrary, data: JSONBody[LettersBody]) -> DroppedLetters:
        """Deletes these dead letters without learning them: their turns stay in the record. Unknown ids are ignored."""
        return DroppedLetters(await library.operator.drop(data.ids))

    @operation(get, "/reports", "listReports", allowed=OPERATES)
    async def reports(self, library: TheLibrary, limit: ReportLimit = 20, cursor: FromQuery[str] = "") -> ReportsView:
        """Reports of evaluations, newest first: `memproxy eval … --report` keeps them."""
        page = await library.operator.reports.page(limit=limit, cursor=cursor)
        return ReportsView(list(map(report_view, page.items)), page.next_cursor or None)

    @operation(get, "/reports/{id:str}", "getReport", allowed=OPERATES, errors=(404,))
    async def report(self, library: TheLibrary, path_id: PathId) -> WholeReportView:
        """One report, with its figures."""
        found = await library.operator.reports.get(path_id)
        if found is None:
            raise NotFound("there is no such report")
        tables = [view_of(ReportTableView, one, rows=list(map(list, one.rows))) for one in found.tables]
        return WholeReportView(report_view(found.head), tables)

    @operation(get, "/health", "getHealthOfParts", allowed=OPERATES)
    async def health(self, library: TheLibrary) -> HealthOfParts:
        """Whether each part of the deployment works now, as far as it can be seen from the API."""
        found = await library.operator.health()
        return HealthOfParts([view_of(PartView, one, ok=one.is_ok) for one in found])


def report_view(head: ReportHead) -> ReportView:
    return view_of(ReportView, head, created_at=time_text(head.at))


def request_view(receipt: Receipt) -> TracedRequestView:
    """A receipt without its texts."""
    return view_of(
        TracedRequestView,
        receipt,
        receipt_id=receipt.id,
        created_at=time_text(receipt.at),
        memories=sum(len(note.memory_ids) for note in receipt.notes),
        tokens=sum(note.tokens for note in receipt.notes),
        verdicts=Counter(candidate.verdict for candidate in receipt.candidates),
    )
