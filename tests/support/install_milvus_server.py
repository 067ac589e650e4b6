"""Installs Milvus 2.3.5 standalone for tests and benches, once, into the user's cache: `make milvusserver`.

In an environment of its own, since it needs an old setuptools. 330 MB, 10 s. The package holds the server's programs
compressed; they are unpacked once here rather than at each start.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from milvus_standalone import INSTALLED

PACKAGES = ("setuptools==65.5.1", "milvus==2.3.5")
UNPACK = "import milvus, sys; milvus._initialize_data_files(sys.argv[1])"


def main() -> None:
    if (INSTALLED / "complete").is_file():
        return
    shutil.rmtree(INSTALLED, ignore_errors=True)
    venv = INSTALLED / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, stdout=sys.stderr)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(pip, check=True, stdout=sys.stderr)
    subprocess.run([venv / "bin" / "python", "-c", UNPACK, INSTALLED], check=True, stdout=sys.stderr)
    (INSTALLED / "complete").touch()


if __name__ == "__main__":
    main()
