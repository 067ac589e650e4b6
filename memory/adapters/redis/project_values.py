"""The keys and values of shared projects: all of one project has one hash tag."""

from __future__ import annotations

import msgspec

from memory.adapters.redis.log_keys import digest_of
from memory.model.projects import MemoryVisibility, SharedMemory, SharedProject


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


def name_key(tenant: str, project_id: str) -> str:
    """Holds the key of the project that has that name."""
    return f"memproxy:project:{digest_of(tenant)}{digest_of(project_id)}"


def key_of_memory(memory_id: str) -> str:
    """The key of the project whose memory may have that id: see `memory.model.projects.shared_id`."""
    return memory_id.partition(".")[0]


def encode_project(project: SharedProject) -> bytes:
    return _ENCODER.encode(project)


def decode_project(stored: bytes) -> SharedProject:
    return _PROJECTS.decode(stored)


def encode_entry(entry: SharedMemory) -> bytes:
    return _ENCODER.encode(StoredEntry(entry.author_id, entry.visibility, entry.changed_at))


def decode_entry(memory_id: str, stored: bytes) -> SharedMemory:
    entry = _ENTRIES.decode(stored)
    return SharedMemory(memory_id, key_of_memory(memory_id), entry.author_id, entry.visibility, entry.changed_at)


_ENCODER = msgspec.msgpack.Encoder()
_PROJECTS = msgspec.msgpack.Decoder(SharedProject)
_ENTRIES = msgspec.msgpack.Decoder(StoredEntry)
