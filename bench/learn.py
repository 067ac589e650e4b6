"""How fast talk becomes memories: turns per second, the queue's lag, and what a model costs per 100 turns.

`python bench/learn.py [TURNS] [--llm URL --model NAME]`. A real worker with the real models, on the real store and turn
log, with messages as long, and as full of facts, as the longer ones of real chats: about 1.2 KB and four facts, put
together from the training texts of the reader. First a backlog: all turns at once, until the last is learnt. Then a
steady pace, to see how long after its reply a turn is learnt. Without `--llm` the trained reader reads.
`cached_share` is what of the prompts the server says that it had in its prefix cache; 0 where it does not tell. On a
shared machine compare figures of one run only.

Bar: without a model at least 60 turns a second.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rig import free_port, report  # first: it makes tests/support importable

from learning_processes import Records, WorkerProcess, records_of, running_learning_processes  # isort: skip

from memory.app import SYSTEM_CLOCK

sys.path.insert(0, str(Path(__file__).parent / "reader"))
import texts  # isort: skip

USERS, SESSIONS = 20, 2  # sessions of each user
STEADY_SECONDS, STEADY_TURNS_PER_SECOND = 8, 5
IDLE_SECONDS = 1  # after which a session is worth a model's call; the lags of a model hold it
LEARNT_SECONDS_MAX = 1_800.0
ANSWER = "Certainly, here is what I would do about it."
MESSAGE_CHARACTERS = 1_200  # a long turn of LongMemEval's users; the mean of all is 250
MESSAGE_FACTS = 4  # that its longer turns are found to hold
TURNS_PER_SECOND_BAR = 60.0


@cache
def messages() -> list[str]:
    """Of about `MESSAGE_CHARACTERS` with about `MESSAGE_FACTS`, in a fixed order, no two alike."""
    made: list[str] = []
    parts: list[texts.Marked] = []
    telling = [marked for marked in texts.messages() if marked.spans]
    idle = [marked for marked in texts.messages() if not marked.spans]
    while telling and idle:
        tells = sum(len(marked.spans) for marked in parts) < MESSAGE_FACTS
        parts.append(telling.pop() if tells else idle.pop())
        if sum(len(marked.text) for marked in parts) >= MESSAGE_CHARACTERS:
            made.append("\n\n".join(marked.text for marked in parts)[:MESSAGE_CHARACTERS])
            parts = []
    return made


def message(number: int) -> str:
    """After all of them they come again, each with a number of its own, so that it is not the same statement."""
    every = messages()
    again, place = divmod(number, len(every))
    return every[place] + (f" And that was number {again}." if again else "")


async def tell(records: Records, number: int) -> str:
    user = f"user-{number % USERS}"
    session = f"s{number // USERS % SESSIONS}"
    await records.tell(f"t-{number}", user, message(number), at=SYSTEM_CLOCK(), session=session, answer=ANSWER)
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


def settings_for(llm: str, model: str) -> dict[str, Any]:
    if not llm:
        return {"memory": {"learn": {"reader": "trained"}}}
    url = urlsplit(llm)
    endpoint = {"address": f"{url.scheme}://{url.hostname}", "port": url.port or 80}
    role = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": model}
    memory = {"learn": {"idle_seconds": IDLE_SECONDS, "reader": "model"}}
    return {"external_models": [role], "memory": memory}


async def measure(turns: int, llm: str, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, running_learning_processes(Path(folder)) as parts:
        try:
            async with records_of(parts) as records:
                worker = parts.start_worker(settings_for(llm, model), metrics_port=free_port())
                await worker.warm()
                seconds = await backlog(records, turns)
                spent = await totals(worker)
                lag = await steady(records, worker, turns)
                worker.stop()
        finally:
            parts.end()
    if llm and not spent["calls"]:
        raise SystemExit("no model was asked, although one was named")
    return {
        "reader": model if llm else "trained",
        "message_characters": MESSAGE_CHARACTERS,
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
    options = parser.parse_args()
    result = asyncio.run(measure(options.turns, options.llm, options.model))
    report("learn", result, [(name, value) for name, value in result.items()], ["figure", "value"])
    if not options.llm and result["turns_per_second"] < TURNS_PER_SECOND_BAR:
        raise SystemExit(f"{result['turns_per_second']} turns a second: the bar is {TURNS_PER_SECOND_BAR}")


if __name__ == "__main__":
    main()
