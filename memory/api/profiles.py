"""The endpoints of profiles."""

from __future__ import annotations

import msgspec
from litestar import Controller, delete, get, put
from litestar.params import FromQuery, JSONBody

from memory.api.guards import bounded_project
from memory.api.memory_views import EvidenceView
from memory.api.operations import READS_PROJECTS, WRITES_PROJECTS, TheCall, operation
from memory.api.times import TimeText
from memory.api.views import view_of
from memory.service.profile_layout import pinned_text
from memory.service.profiles import ShownProfile


class ProfileBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`pinned`: the user's own lines. `enabled: false` of the user's own profile is for their projects too."""

    pinned: list[str] | None = None
    enabled: bool | None = None


class ProfileLineView(msgspec.Struct, frozen=True):
    text: str
    memory_id: str
    evidence: list[EvidenceView]


class ProfileView(msgspec.Struct, frozen=True):
    """`text` is what a prompt gets of it."""

    user_id: str
    project_id: str
    enabled: bool
    version: int
    updated_at: TimeText
    pinned: list[str]
    lines: list[ProfileLineView]
    text: str
    tokens: int


class DeletedProfile(msgspec.Struct, frozen=True):
    deleted: bool


class ProfilesController(Controller):
    path = "/profile"
    tags = ("profiles",)

    @operation(get, "/", "getProfile", allowed=READS_PROJECTS, errors=(404,))
    async def show(self, call: TheCall, project_id: FromQuery[str] = "") -> ProfileView:
        """The profile of the user, or of that project, built again first if memories have changed."""
        return profile_view(await call.library.profiles.show(call.user_id, bounded_project(call.caller, project_id)))

    @operation(put, "/", "setProfile", allowed=WRITES_PROJECTS, errors=(404, 409))
    async def set(self, call: TheCall, data: JSONBody[ProfileBody], project_id: FromQuery[str] = "") -> ProfileView:
        """Sets the user's own lines, or switches the profile on or off."""
        project_id = bounded_project(call.caller, project_id)
        shown = await call.library.profiles.set_own(
            call.user_id, project_id, pinned=data.pinned, is_enabled=data.enabled
        )
        return profile_view(shown)

    @operation(delete, "/", "deleteProfile", allowed=WRITES_PROJECTS, errors=(409,))
    async def delete(self, call: TheCall, project_id: FromQuery[str] = "") -> DeletedProfile:
        """Deletes all profiles of the user, or that of the project, with pinned lines, also from past notes."""
        await call.library.profiles.delete(call.user_id, bounded_project(call.caller, project_id))
        return DeletedProfile(True)


def profile_view(shown: ShownProfile) -> ProfileView:
    profile = shown.profile
    return view_of(
        ProfileView,
        profile,
        enabled=profile.is_enabled,
        pinned=[pinned_text(line) for line in profile.pinned],
        lines=[
            ProfileLineView(
                line.text.removeprefix("- "),
                line.memory_id,
                [view_of(EvidenceView, one) for one in shown.evidence.get(line.memory_id, ())],
            )
            for line in profile.lines
        ],
        text=shown.text,
        tokens=shown.tokens,
    )
