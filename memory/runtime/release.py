"""Which memproxy a process runs, as stated when it was started: what is installed later is another matter."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

NAME = "memproxy"
PACKAGES = ("extproc/", "memory/")
CODE_CHARACTERS = 8  # of the digest; two installations of one machine are told apart


@dataclass(frozen=True, slots=True)
class Release:
    """`version`: of the package. `code`: a digest of its installed files; "" where a working tree is used in place."""

    version: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.version} ({self.code})" if self.code else self.version

    def differs_from(self, other: Release) -> bool:
        """Whether other code runs there. Of one version, code of which nothing is known counts as the same."""
        return self.version != other.version or bool(self.code and other.code and self.code != other.code)


def release_of(installed: Distribution) -> Release:
    """What is installed there now, by its list of files with their digests (RECORD)."""
    listed = (installed.read_text("RECORD") or "").splitlines()
    modules = sorted(line for line in listed if line.startswith(PACKAGES) and line.split(",")[0].endswith(".py"))
    code = hashlib.sha256("\n".join(modules).encode()).hexdigest()[:CODE_CHARACTERS] if modules else ""
    return Release(installed.version, code)


RUNNING = release_of(distribution(NAME))  # read once, while this process starts
