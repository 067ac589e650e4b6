"""`memproxy opt-out` and `memproxy opt-in`: a user's switch for all of memory, through the REST API."""

from __future__ import annotations

from memory.cli.options import ApiOptions
from memory.cli.output import print_result

PATH = "/v1/memory/opt-out"


def opt_out(options: ApiOptions) -> None:
    """Switch memory off for a user: nothing is recalled, recorded or learnt. What is stored stays until forgotten."""
    _changed("PUT", options)


def opt_in(options: ApiOptions) -> None:
    """Switch memory on again for a user who has opted out."""
    _changed("DELETE", options)


def _changed(method: str, options: ApiOptions) -> None:
    from memory.cli.api_client import answer_of

    with options.client() as client:
        state = answer_of(client.request(method, PATH))
    sentence = f"opted out since {state['opted_out_since']}" if state["opted_out"] else "memory is on"
    print_result(state, sentence, as_json=options.as_json)
