"""How fast talk becomes memories: turns per second, the queue's lag, and what a model costs per 100 turns.

`python bench/learn.py [TURNS] [--llm URL --model NAME]`. A real worker on the real store, embedder and turn log. First
a backlog: all turns at once, until the last is learnt. Then a steady pace, to see how long after its reply a turn is
learnt. Without `--llm` no model is asked (verbatim mode). `cached_share` is what of the prompts the server says that it
had in its prefix cache; 0 where it does not tell. On a shared machine compare figures of one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rig import free_port, report  # first: it makes tests/support importable

from learning_processes import CONFIG_FILE, Records, WorkerProcess, records_of, running_learning_processes  # isort: skip

from memory.app import SYSTEM_CLOCK
from memory.config import from_process
from memory.tuning import extraction_strategy

USERS, SESSIONS = 20, 2  # sessions of each user
STEADY_SECONDS, STEADY_TURNS_PER_SECOND = 8, 5
IDLE_SECONDS = 1  # after which a session is worth a model's call; the lags of a model hold it
LEARNT_SECONDS_MAX = 1_800.0
THINGS = "quince tree,piano,bicycle,tent,camera,boat,ladder,kettle,violin,telescope,loom,garden fence".split(",")
PLACES = "behind the shed,in Lisbon,at my aunt's,near the station,in the attic,at the lake".split(",")
ASKS = "Can you plan a walk?,What is the capital of Peru?,Thanks!,How do I boil an egg?".split(",")
ANSWER = "Certainly, here is what I would do about it."


def sentence(number: int) -> str:
    """Of eight, three state something with a number, one changes one of them, two tell something that a model has to be
    asked about, one of them pointing back, and two teach nothing."""
    thing, place = THINGS[number % len(THINGS)], PLACES[number // len(THINGS) % len(PLACES)]
    match number // USERS % 8:
        case 0 | 2 | 5:
            return f"My {thing} number {number} is {place} since {1950 + number % 70}."
        case 1:
            return f"I clean the {thing} after dinner when everybody sleeps."
        case 3:
            return f"I got it for less than I thought, {place}."
        case 6:
            return sentence(number - USERS).replace(" since ", " no longer, it is at the repair shop since ")
        case _:
            return ASKS[number % len(ASKS)]


async def tell(records: Records, number: int) -> str:
    user = f"user-{number % USERS}"
    session = f"s{number // USERS % SESSIONS}"
    await records.tell(f"t-{number}", user, sentence(number), at=SYSTEM_CLOCK(), session=session, answer=ANSWER)
    return user


async def backlog(records: Records, turns: int) -> float:
    """Seconds from the first append until the last turn is learnt."""
    began = time.perf_counter()
    users = {await tell(records, number) for number in range(turns)}
    await records.learnt(*users, seconds=LEARNT_SECONDS_MAX)
    return time.perf_counter() - began


async def steady(records: Records, worker: WorkerProcess, first: int) -> float:
    """Mean seconds from a turn's end until it is learnt, at a pace that a worker should hold."""
    before = await totals(worker)
    users = set()
    for number in range(STEADY_SECONDS * STEADY_TURNS_PER_SECOND):
        users.add(await tell(records, first + number))
        await asyncio.sleep(1 / STEADY_TURNS_PER_SECOND)
    await records.learnt(*users, seconds=LEARNT_SECONDS_MAX)
    after = await totals(worker)
    windows = after["windows"] - before["windows"]
    return (after["lag"] - before["lag"]) / windows if windows else 0.0


async def totals(worker: WorkerProcess) -> dict[str, float]:
    names = {
        "lag": ("memproxy_learn_lag_seconds_sum", {}),
        "windows": ("memproxy_learn_lag_seconds_count", {}),
        "calls": ("memproxy_model_calls_total", {}),
        "prompt_tokens": ("memproxy_model_tokens_total", {"kind": "prompt"}),
        "cached_tokens": ("memproxy_model_tokens_total", {"kind": "cached"}),
    }
    return {key: await worker.metric(name, **labels) or 0.0 for key, (name, labels) in names.items()}


def settings_for(llm: str, model: str, strategy: str) -> dict[str, Any]:
    if not llm:
        return {}
    url = urlsplit(llm)
    endpoint = {"address": f"{url.scheme}://{url.hostname}", "port": url.port or 80}
    role = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": model}
    memory = {"learn": {"idle_seconds": IDLE_SECONDS}, "extraction": {"strategy": strategy}}
    return {"external_models": [role], "memory": memory}


async def measure(turns: int, llm: str, model: str, strategy: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, running_learning_processes(Path(folder)) as parts:
        try:
            async with records_of(parts) as records:
                worker = parts.start_worker(settings_for(llm, model, strategy), metrics_port=free_port())
                used = extraction_strategy(from_process(parts.folder / CONFIG_FILE, {}))
                await worker.warm()
                seconds = await backlog(records, turns)
                spent = await totals(worker)
                lag = await steady(records, worker, turns)
                worker.stop()
        finally:
            parts.end()
    if llm and not spent["calls"]:
        raise SystemExit("no model was asked: this release extracts without one, whatever the settings name")
    return {
        "strategy": used,
        "model": model if llm else "",
        "turns": turns,
        "turns_per_second": round(turns / seconds, 2),
        "windows": int(spent["windows"]),
        "model_calls_per_100_turns": round(100 * spent["calls"] / turns, 2),
        "prompt_tokens_per_100_turns": round(100 * spent["prompt_tokens"] / turns, 1),
        "cached_share": round(spent["cached_tokens"] / max(1.0, spent["prompt_tokens"]), 3),
        "backlog_lag_seconds_mean": round(spent["lag"] / max(1.0, spent["windows"]), 3),
        "steady_turns_per_second": STEADY_TURNS_PER_SECOND,
        "steady_lag_seconds_mean": round(lag, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("turns", nargs="?", type=int, default=400)
    parser.add_argument("--llm", default="", help="base URL of an OpenAI-compatible server that extracts")
    parser.add_argument("--model", default="m", help="what it calls its model")
    parser.add_argument("--strategy", default="auto", choices=("auto", "judge", "draft"), help="how it is used")
    options = parser.parse_args()
    result = asyncio.run(measure(options.turns, options.llm, options.model, options.strategy))
    report("learn", result, [(name, value) for name, value in result.items()], ["figure", "value"])


if __name__ == "__main__":
    main()
