"""Runs the Dockerfile's steps without an engine, in a fresh folder, and tries what comes out: `make compose-check`.

All stages share one root, the folder, under which the image's paths are put; its base image is the Python that runs
this. Steps that need root in a container are named and skipped. The result must have no torch, and its filter must
serve without it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATHS = re.compile(r"(?<![\w.])(/opt/memproxy|/opt/small-model|/src|/var/lib/memproxy|/run/memproxy)\b")
NEEDS_ROOT = ("apt-get", "useradd")
NOT_IN_IMAGE = ("torch", "transformers", "sentence_transformers")
WITHOUT_EFFECT = ("USER", "VOLUME", "ENTRYPOINT", "CMD")
SERVES_SECONDS_MAX = 120.0


@dataclass
class Stage:
    """What a stage hands on to those that begin with it."""

    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    copied: list[str] = field(default_factory=list)  # from other stages: what the image is made of


def steps(dockerfile: str) -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out, continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


class Build:
    """One build below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stages: dict[str, Stage] = {}
        self.stage = Stage()

    def here(self, text: str) -> str:
        """With the image's paths below our root."""
        return PATHS.sub(lambda match: f"{self.root}{match[1]}", text)

    def run(self, dockerfile: str) -> Stage:
        """All steps; the last stage."""
        for instruction, rest in steps(dockerfile):
            print(f"{instruction} {rest}"[:150], flush=True)
            if instruction not in WITHOUT_EFFECT:
                getattr(self, f"on_{instruction.lower()}")(rest)
        return self.stage

    def on_from(self, rest: str) -> None:
        base, _, name = rest.partition(" AS ")
        known = self.stages.get(base, Stage())
        self.stage = Stage(dict(known.environment), known.folder, list(known.copied))
        self.stages[name] = self.stage

    def on_arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        if name in os.environ or default:  # noqa: TID251 - as `--build-arg`
            self.stage.environment[name] = os.environ.get(name, default.strip('"'))  # noqa: TID251

    def on_env(self, rest: str) -> None:
        known = {**os.environ, **self.stage.environment}  # noqa: TID251 - what a step sees
        for word in shlex.split(rest):
            name, _, value = word.partition("=")
            shown = re.sub(r"\$\{?(\w+)\}?", lambda match: known.get(match[1], ""), value)
            self.stage.environment[name] = self.here(shown)

    def on_workdir(self, rest: str) -> None:
        self.stage.folder = rest
        self.place("").mkdir(parents=True, exist_ok=True)

    def on_copy(self, rest: str) -> None:
        if rest.startswith("--from="):  # the same root: it is there
            self.stage.copied.append(rest.split()[-1])
            return
        *sources, target = rest.split()
        for source in sources:
            goal = self.place(target) / Path(source).name if target.endswith("/") else self.place(target)
            goal.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, goal)

    def on_run(self, rest: str) -> None:
        if any(word in rest for word in NEEDS_ROOT):
            print("  skipped: it needs to be root in a container")
            return
        environment = {**os.environ, **self.stage.environment}  # noqa: TID251 - pip's settings
        environment.pop("PYTHONPATH", None)
        if not environment.get("PIP_EXTRA_INDEX_URL"):
            environment.pop("PIP_EXTRA_INDEX_URL", None)
        command = self.here(rest).replace("python -m venv", f"{sys.executable} -m venv")
        subprocess.run(["bash", "-ec", command], cwd=self.place(""), env=environment, check=True)

    def place(self, path: str) -> Path:
        return Path(self.here(str(Path(self.stage.folder) / path)))


def tried(root: Path, stage: Stage) -> None:
    """The image starts a filter that recalls, without torch."""
    site = next((root / "opt/memproxy/lib").glob("python3*")) / "site-packages"
    present = [name for name in NOT_IN_IMAGE if (site / name).exists()]
    assert not present, f"in the final image: {present}"
    for folder in ("var/lib/memproxy", "run/memproxy"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {"PATH": os.defpath, **stage.environment, "MEMPROXY_MILVUS_URI": "http://127.0.0.1:9"}
    program = str(root / "opt/memproxy/bin/memproxy")
    served = subprocess.Popen([program, "filter", "--listen", address], env=environment, cwd=root / "run/memproxy")
    try:
        deadline = time.monotonic() + SERVES_SECONDS_MAX
        probe = [program, "probe", f"grpc:{address}"]
        while subprocess.run(probe, env=environment, check=False).returncode:
            assert served.poll() is None, "the filter ended"
            assert time.monotonic() < deadline, "the filter does not serve"
            time.sleep(0.5)
    finally:
        served.terminate()
        assert served.wait(timeout=90) == 0, "the filter did not end in order"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        root = Path(folder)
        stage = Build(root).run((ROOT / "Dockerfile").read_text(encoding="utf-8"))
        tried(root, stage)
        paths = [f"{root}{path}" for path in stage.copied]
        shown = subprocess.run(["du", "-sm", *paths], check=True, capture_output=True, text=True).stdout
        sizes = {Path(line.split()[1]).name: int(line.split()[0]) for line in shown.splitlines()}
    print(json.dumps({"mib_above_the_base_image": sizes}))


if __name__ == "__main__":
    main()
