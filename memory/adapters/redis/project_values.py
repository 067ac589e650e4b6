"""The keys and values of shared projects: all of one project has one hash tag."""

from __future__ import annotations

import msgspec

from memory.adapters.redis.log_keys import digest_of
from memory.model.projects import Invitation, MemoryVisibility, ProjectRole, SharedMemory, SharedProject


class ProjectKeys:
    """The keys of one project."""

    def __init__(self, key: str) -> None:
        self._tag = f"memproxy:{{p:{key}}}"

    @property
    def project(self) -> str:
        """The project itself: without it there are no members, readers and entries."""
        return f"{self._tag}:project"

    @property
    def roles(self) -> str:
        """Hash: roles by user."""
        return f"{self._tag}:roles"

    @property
    def joined(self) -> str:
        """Hash: when a user became a member, in Unix seconds."""
        return f"{self._tag}:joined"

    @property
    def choices(self) -> str:
        """Set of the members who created the project, or accepted an invitation."""
        return f"{self._tag}:choices"

    @property
    def invitations(self) -> str:
        """Hash: invitations by user."""
        return f"{self._tag}:invitations"

    @property
    def readers(self) -> str:
        """Set of users."""
        return f"{self._tag}:readers"

    @property
    def memories(self) -> str:
        """Hash: entries by memory."""
        return f"{self._tag}:memories"


class StoredEntry(msgspec.Struct, frozen=True):
    author_id: str
    visibility: MemoryVisibility
    changed_at: float


class StoredInvitation(msgspec.Struct, frozen=True):
    role: ProjectRole
    invited_by: str
    invited_at: float


def name_keys(project: SharedProject) -> list[str]:
    """The first holds the key of the project, whose id is claimed with it; the second may, if there are no tenants and
    an earlier release created the project.
    """
    return [
        f"memproxy:project:{digest_of(space)}{digest_of(project.project_id)}"
        for space in dict.fromkeys((project.space, project.tenant))
    ]


def key_of_memory(memory_id: str) -> str:
    """The key of the project whose memory may have that id: see `memory.model.projects.shared_id`."""
    return memory_id.partition(".")[0]


def encode_project(project: SharedProject) -> bytes:
    return _ENCODER.encode(project)


def decode_project(stored: bytes) -> SharedProject:
    return _PROJECTS.decode(stored)


def encode_invitation(invitation: Invitation) -> bytes:
    return _ENCODER.encode(StoredInvitation(invitation.role, invitation.invited_by, invitation.invited_at))


def decode_invitation(project: SharedProject, user_id: str, stored: bytes) -> Invitation:
    found = _INVITATIONS.decode(stored)
    return Invitation(project, user_id, found.role, found.invited_by, found.invited_at)


def encode_entry(entry: SharedMemory) -> bytes:
    return _ENCODER.encode(StoredEntry(entry.author_id, entry.visibility, entry.changed_at))


def decode_entry(memory_id: str, stored: bytes) -> SharedMemory:
    entry = _ENTRIES.decode(stored)
    return SharedMemory(memory_id, key_of_memory(memory_id), entry.author_id, entry.visibility, entry.changed_at)


_ENCODER = msgspec.msgpack.Encoder()
_PROJECTS = msgspec.msgpack.Decoder(SharedProject)
_INVITATIONS = msgspec.msgpack.Decoder(StoredInvitation)
_ENTRIES = msgspec.msgpack.Decoder(StoredEntry)
