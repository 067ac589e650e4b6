"""Takes away from an environment what no part in a container needs: torch, and the embedded store. A step of the image.

What stays is what the package's own dependencies need, followed from `pyproject.toml`; everything else goes.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distributions, requires

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

PACKAGE = "memproxy"
ONLY_TO_PREPARE = {"sentence-transformers", "onnx"}
OF_OTHERS = {"milvus-lite", "xllamacpp"}  # containers have a Milvus server, and the small model an image of its own
TOOLS = {"pip", "setuptools", PACKAGE}


def needed(package: str, extras: frozenset[str] = frozenset(), seen: set[tuple[str, str]] | None = None) -> set[str]:
    """The names of all packages that this one needs, itself included."""
    seen = set() if seen is None else seen
    found = {package}
    for extra in {"", *extras}:
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        for one in map(Requirement, declared(package)):
            name = canonicalize_name(one.name)
            if name in ONLY_TO_PREPARE | OF_OTHERS or (one.marker and not one.marker.evaluate({"extra": extra})):
                continue
            found |= needed(name, frozenset(one.extras), seen)
    return found


def declared(package: str) -> list[str]:
    try:
        return requires(package) or []
    except PackageNotFoundError:
        return []


def main() -> None:
    installed = {canonicalize_name(one.metadata["Name"]) for one in distributions()}
    surplus = sorted(installed - needed(PACKAGE) - TOOLS)
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", *surplus], check=True)


if __name__ == "__main__":
    main()
