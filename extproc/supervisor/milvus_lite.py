"""Serves the embedded store: Milvus Lite on a Unix socket, or on a port where one was asked for.

Milvus Lite asks nobody who they are: whoever reaches its address reads and writes the memories of all users. Its own
command listens on ports only.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from milvus_lite.adapter.grpc.server import start_server_in_thread

from extproc.supervisor.locks_and_ports import CannotStart

# Milvus Lite 3.2 appends to its log without a lock. Two calls that write at once leave a record there that cannot be
# read, and when it is killed, all that was written after that is lost.
THREADS = 1
CALLS_END_SECONDS = 5.0  # how long calls under way may take once it is told to stop
SOCKET_MODE = 0o600
OF_OTHERS = 0o077  # rights that nothing gets which this process makes: its files, and its socket from the first moment


def serve(data_dir: Path, address: str) -> None:
    """Until SIGINT, on which it closes its files, also while it is starting. Call from the main thread of a process of
    its own. `address`: `unix:PATH` or `HOST:PORT`. Raises `CannotStart`.
    """
    stopped = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    os.umask(OF_OTHERS)
    host, _, port = address.rpartition(":")
    try:
        server, store, _ = start_server_in_thread(str(data_dir), host=host, port=port, max_workers=THREADS)
    except RuntimeError as error:  # of gRPC
        raise CannotStart(f"the store cannot listen on {address}: {error}") from error
    try:
        if host == "unix":
            Path(port).chmod(SOCKET_MODE)
        stopped.wait()
        server.stop(grace=CALLS_END_SECONDS).wait()
    finally:
        store.close()
