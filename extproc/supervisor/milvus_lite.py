"""Serves the embedded store: Milvus Lite on a Unix socket, or on a port where one was asked for.

Milvus Lite asks nobody who they are: whoever reaches its address reads and writes the memories of all users. Its own
command listens on ports only.
"""

from __future__ import annotations

import os
from pathlib import Path

from milvus_lite.adapter.grpc.server import start_server_in_thread

from extproc.supervisor.locks_and_ports import CannotStart

# Milvus Lite 3.2 appends to its log without a lock. Two calls that write at once leave a record there that cannot be
# read, and when it is killed, all that was written after that is lost.
THREADS = 1
CALLS_END_SECONDS = 5.0  # how long calls under way may take once it is told to stop
SOCKET_MODE = 0o600


def serve(data_dir: Path, address: str) -> None:
    """Until SIGINT, on which it closes its files. `address`: `unix:PATH` in a folder that others cannot enter, or
    `HOST:PORT`. Raises `CannotStart`.
    """
    host, _, port = address.rpartition(":")
    server, store, bound = start_server_in_thread(str(data_dir), host=host, port=port, max_workers=THREADS)
    try:
        if not bound:
            raise CannotStart(f"the store cannot listen on {address}")
        if host == "unix":
            os.chmod(port, SOCKET_MODE)  # noqa: PTH101 - until then its folder keeps others out
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(grace=CALLS_END_SECONDS).wait()
    finally:
        store.close()


__all__ = ["serve"]
