"""What `up` leaves in the data directory, and removes from it, before any part runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from extproc.supervisor.supervisor import claimed
from memory.settings import Settings

SERVER = "http://127.0.0.1:9"  # nothing answers there, and nothing has to


@pytest.mark.parametrize("milvus_uri", ["", SERVER])
def test_the_address_of_an_earlier_run_s_store_is_gone(tmp_path: Path, milvus_uri: str) -> None:
    """It was killed. By what it left, files of the directory would be taken for those of the server."""
    settings = Settings(
        data_dir=str(tmp_path),
        milvus_uri=milvus_uri,
        upstream=SERVER,
        port=0,
        api_port=0,
        metrics_port=0,
        envoy_admin_port=0,
    )
    settings.milvus_uri_file.write_text("http://127.0.0.1:19530")
    with claimed(settings) as run:
        if milvus_uri:
            assert not settings.milvus_uri_file.exists()
        else:
            assert settings.milvus_uri_file.read_text() == run.settings.milvus_uri
    assert not settings.milvus_uri_file.exists()


@pytest.mark.parametrize(("uri", "port"), [("unix:/run/milvus.sock", None), ("http://milvus.example:19531", 19531)])
def test_the_port_of_a_store_is_known_where_it_has_one(tmp_path: Path, uri: str, port: int | None) -> None:
    settings = Settings(data_dir=str(tmp_path), milvus_uri=uri, upstream=SERVER, port=0, api_port=0, metrics_port=0)
    with claimed(settings) as run:
        assert (run.ports.milvus, run.ports.envoy_admin) == (port, None)
