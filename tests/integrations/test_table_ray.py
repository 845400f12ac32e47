"""Ray reads the parts in tasks, and the sums equal those of the library's own API. Ray runs locally."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from children import in_own_process
from recipes import recipe

needed("ray")
needed("pyarrow")

PART = 1_000_000


def in_tasks(folder: str, own_folder: str) -> None:
    # Ray sends no usage statistics, writes nothing to the real HOME, and accepts no remote connections.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", HOME=folder)
    import pyarrow
    import ray
    from ray.data import DataContext

    dataset = recipe("lines_in_ray").dataset
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=80_000_000,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=own_folder,
    )
    try:
        DataContext.get_current().enable_progress_bars = False
        DataContext.get_current().execution_options.preserve_order = True
        used = dataset(folder, "usage", part_bytes=PART, concurrency=2)
        blocks = [ray.get(block) for block in used.to_arrow_refs()]
        assert len(blocks) > 5
        assert sums(blocks) == wanted()
        spoken = dataset(folder, "messages", ["uuid", "type"], {"user"}, part_bytes=PART)
        assert spoken.schema().names == ["uuid", "type"]
        assert spoken.count() == 389
        assert {row["type"] for row in spoken.take(20)} == {"user"}
        whole = pyarrow.concat_tables(blocks)
        tokens = sum(batch["output_tokens"].sum() for batch in used.iter_batches(batch_format="numpy"))
        assert tokens == sum(whole["output_tokens"].to_pylist())
        for wrong, said in (({"strict": True}, "half of a surrogate pair"), ({"columns": ["uid"]}, "no column 'uid'")):
            with pytest.raises(Exception, match=said):
                dataset(folder, part_bytes=PART, **wrong).count()
    finally:
        ray.shutdown()


def test_sums_are_those_of_the_api(tmp_path: Path) -> None:
    # Ray creates its sockets in this folder. A socket path may have at most 107 bytes, so keep it short.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        in_own_process(in_tasks, str(unpack_all(tmp_path)), folder)
