"""Builds profiles from memories, soon after these have changed and for whoever asks, and serves them to the API.

Building takes no lock: it reads a revision and then the memories, and what it built is stored only if nobody has
written since. A user who writes continuously therefore keeps the last profile until the next pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import structlog

from memory.errors import BadInput, MemproxyError, NotFound
from memory.model import Evidence, Memory, Profile, ProfileLine, Scope
from memory.ports import Clock, MemoryBank, MemoryFilter, Profiles, Revision, Tokens
from memory.runtime.tracing import Telemetry
from memory.service.memory_scan import newest
from memory.service.profile_layout import (
    LINE_TOKENS_MAX,
    PINNED_LINES_MAX,
    PINNED_TOKENS_MAX,
    pinned_line,
    pinned_text,
    profile_lines,
    profile_text,
    wishes_text,
)
from memory.service.service_parts import Service, ServiceParts
from memory.service.user_writes import erase_epoch_of, refuse_erased

MEMORIES_MAX = 2_000  # of one user, the newest; with what the profile holds already
PROFILES_MAX = 1_000  # of one user, by what they decide: each write of a memory reads all of them
PINNED_CHARACTERS_MAX = 600  # of one line, refused before its tokens are counted: no token of a sentence is so long
ROUNDS_MAX = 3  # of building for a caller, while somebody else writes
REST_SECONDS = 2.0  # between two builds of one user
STALE_USERS_MAX = 50  # looked at per poll

log = structlog.get_logger(__name__)


class ProfileBuilder:
    """Stateless. Methods raise `Unavailable`."""

    def __init__(self, *, memories: MemoryBank, profiles: Profiles, clock: Clock, tokens: Tokens) -> None:
        self._memories = memories
        self._profiles = profiles
        self._clock = clock
        self._tokens = tokens

    async def build(self, user_id: str) -> bool:
        """Build all profiles of the user. False if somebody wrote meanwhile; the user then stays stale."""
        revision = await self._memories.ledger.revision(user_id)
        if not revision.is_settled:
            return False
        memories, now = await self._known(user_id, revision), self._clock()
        of_project: dict[str, list[Memory]] = {}
        for memory in memories:
            if not memory.agent_id:  # what one agent learnt is not for the others
                of_project.setdefault(memory.project_id, []).append(memory)
        lines = {
            project_id: profile_lines(group, now=now, tokens=self._tokens) for project_id, group in of_project.items()
        }
        return await self._profiles.put(user_id, lines, revision=revision.number, now=now)

    async def build_if_stale(self, user_id: str) -> None:
        """Return with current profiles, unless others write continuously."""
        for _ in range(ROUNDS_MAX):
            if not await self._profiles.is_stale(user_id) or await self.build(user_id):
                return

    async def _known(self, user_id: str, revision: Revision) -> Sequence[Memory]:
        """The user's newest active memories, and those that the profile holds."""
        where = MemoryFilter(user_id)
        local = await self._memories.local_memories.as_of(user_id, revision.number)
        records = await local.load_few(where, most=MEMORIES_MAX) if local is not None else None
        if records is not None:
            return [record.memory for record in records]
        found = await newest(self._memories.store, where, most=MEMORIES_MAX)
        if len(found) >= MEMORIES_MAX:  # older memories stay in a profile that holds them
            shown = [one for one in await self._profiles.all(user_id) if not one.project_id]
            ids = [line.memory_id for one in shown for line in one.lines if line.memory_id not in found]
            found |= {record.memory.id: record.memory for record in await self._memories.store.get(user_id, ids)}
        return list(found.values())


@dataclass(frozen=True, slots=True)
class ShownProfile:
    """A profile with the evidence of its lines, by memory id, and the text that a prompt gets."""

    profile: Profile
    evidence: dict[str, tuple[Evidence, ...]]
    text: str
    tokens: int


class OwnProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="profile"):
    """What a user decided about a profile ("": of all projects): their own lines, and whether it is used. As JSON it is
    a line of an export.
    """

    project_id: str = ""
    pinned: tuple[str, ...] = ()
    is_enabled: bool = msgspec.field(name="enabled", default=True)

    @property
    def is_decided(self) -> bool:
        return bool(self.pinned) or not self.is_enabled


class ProfileService(Service):
    """What a user may do with their profiles. Methods raise `BadInput`, `NotFound` or `Unavailable`."""

    def __init__(self, parts: ServiceParts) -> None:
        super().__init__(parts)
        self._profiles = parts.stores.profiles
        self._notes = parts.stores.notes
        self._tokens = parts.intake.tokens
        self._builder = ProfileBuilder(
            memories=parts.memories, profiles=self._profiles, clock=self._clock, tokens=self._tokens
        )
        self.refresh = self._builder.build_if_stale

    async def show(self, user_id: str, project_id: str = "") -> ShownProfile:
        """The current profile, built again first if memories have changed. Raises `NotFound` if it says nothing."""
        Scope(user_id, project_id)  # refuses invalid ids
        await self._builder.build_if_stale(user_id)
        profile = (await self._profiles.get(user_id, [project_id])).get(project_id)
        if profile is None:
            raise NotFound("there is no profile yet")
        ids = [line.memory_id for line in profile.lines]
        records = await self._store.get(user_id, ids) if ids else []
        texts = [of(profile, None, tokens=self._tokens) for of in (wishes_text, profile_text)]
        given = [text for text in texts if text is not None]
        evidence = {record.memory.id: record.memory.evidence for record in records}
        shown = "\n\n".join(text.text for text in given)
        return ShownProfile(profile, evidence, shown, sum(text.tokens for text in given))

    async def set_own(
        self, user_id: str, project_id: str = "", *, pinned: Sequence[str] | None = None, is_enabled: bool | None = None
    ) -> ShownProfile:
        """Set the pinned lines, replacing earlier ones, or switch the profile on or off.

        What is taken back also leaves the conversations that carry it.
        """
        Scope(user_id, project_id)
        if pinned is None and is_enabled is None:
            raise BadInput("nothing to change: give one of pinned, enabled")
        epoch = await erase_epoch_of(self._ledger, user_id)
        lines = None if pinned is None else self._checked(pinned)
        async with self._ledger.write(user_id):
            await refuse_erased(self._ledger, epoch)
            stored = (await self._profiles.get(user_id, [project_id])).get(project_id)
            if stored is None:
                await self._refuse_too_many(user_id)
            before = stored or Profile(user_id, project_id)
            await self._profiles.set_own(user_id, project_id, pinned=lines, is_enabled=is_enabled, now=self._clock())
        if is_enabled is False or (lines is not None and not set(before.pinned) <= set(lines)):
            await self._notes.drop(user_id, (), now=self._clock())
        return await self.show(user_id, project_id)

    async def own(self, user_id: str) -> list[OwnProfile]:
        """What the user decided, for those profiles in which anything is decided."""
        return [own for one in await self._profiles.all(user_id) if (own := _own_part(one)).is_decided]

    async def take_over(self, user_id: str, own: OwnProfile) -> bool:
        """Set what the user decided elsewhere. False, and nothing changed, if they have decided here.

        To be called under the user's lock.
        """
        Scope(user_id, own.project_id)
        lines = self._checked(own.pinned)
        here = (await self._profiles.get(user_id, [own.project_id])).get(own.project_id)
        if not own.is_decided or (here is not None and _own_part(here).is_decided):
            return False
        if here is None:
            await self._refuse_too_many(user_id)
        await self._profiles.set_own(
            user_id, own.project_id, pinned=lines, is_enabled=own.is_enabled, now=self._clock()
        )
        if not own.is_enabled:
            await self._notes.drop(user_id, (), now=self._clock())
        return True

    async def delete(self, user_id: str, project_id: str = "") -> None:
        """Delete the user's profiles, or only that of the project, with pinned lines, also from conversations.

        They are built again when the next memory is stored.
        """
        Scope(user_id, project_id)
        await self._profiles.erase(user_id, project_id)
        await self._notes.drop(user_id, (), now=self._clock())

    async def _refuse_too_many(self, user_id: str) -> None:
        """For a profile that is not there yet. Also empty ones count, which stay until they are deleted."""
        if len(await self._profiles.all(user_id)) >= PROFILES_MAX:
            raise BadInput(f"a user may have {PROFILES_MAX} profiles: delete those of projects that are over")

    def _checked(self, pinned: Sequence[str]) -> list[ProfileLine]:
        if len(pinned) > PINNED_LINES_MAX:
            raise BadInput(f"pinned may have {PINNED_LINES_MAX} lines, got {len(pinned)}")
        lines: list[ProfileLine] = []
        for number, text in enumerate(pinned, 1):
            if not text.strip() or "\n" in text.strip():
                raise BadInput(f"pinned line {number} must be one line of text")
            if len(text) > PINNED_CHARACTERS_MAX:
                raise BadInput(
                    f"pinned line {number} has {len(text)} characters: a line may have {PINNED_CHARACTERS_MAX}, and "
                    f"{LINE_TOKENS_MAX} tokens"
                )
            line = pinned_line(text, tokens=self._tokens)
            if line.tokens > LINE_TOKENS_MAX:
                raise BadInput(f"pinned line {number} has {line.tokens} tokens: a line may have {LINE_TOKENS_MAX}")
            lines.append(line)
        total = sum(line.tokens for line in lines)
        if total > PINNED_TOKENS_MAX:
            raise BadInput(f"all pinned lines together may have {PINNED_TOKENS_MAX} tokens, got {total}")
        return lines


def _own_part(profile: Profile) -> OwnProfile:
    return OwnProfile(profile.project_id, tuple(map(pinned_text, profile.pinned)), profile.is_enabled)


class ProfileRefresher:
    """It never fails, never delays learning, and never logs content. Any number of processes may run one: they only
    repeat each other's work.
    """

    def __init__(self, *, memories: MemoryBank, profiles: Profiles, tokens: Tokens, telemetry: Telemetry) -> None:
        self._builder = ProfileBuilder(memories=memories, profiles=profiles, clock=telemetry.clock, tokens=tokens)
        self._profiles = profiles
        self._metrics = telemetry.metrics
        self._resting: dict[str, float] = {}  # users, and when they were built by the event loop's clock
        self._is_broken = False

    async def refresh(self) -> int:
        """Build the profiles that are due; returns for how many users."""
        built, now = 0, asyncio.get_running_loop().time()
        self._resting = {user_id: at for user_id, at in self._resting.items() if now - at < REST_SECONDS}
        try:
            for user_id in await self._profiles.stale(limit=STALE_USERS_MAX):
                if user_id in self._resting:
                    continue
                self._resting[user_id] = now
                outcome = "built" if await self._builder.build(user_id) else "overtaken"
                self._metrics.profiles.labels(outcome).inc()
                built += outcome == "built"
        except (MemproxyError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if not self._is_broken:
                log.warning("profiles cannot be built now", error=type(error).__name__)
            self._is_broken = True
            return built
        self._is_broken = False
        return built
