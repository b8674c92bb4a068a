"""Counters: what an access adds where; that remembered patterns count like new ones; the metrics' names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.profile import counters as module
from weft.emulator.profile import counting
from weft.emulator.profile.counters import Counters
from weft.emulator.profile.metrics import COUNTED, METRICS, check_metric, value_of

LANE = np.arange(32)


def access(
    space: Space, kind: Kind, threads: Any, addresses: Any, size: int = 4, site: int = 0, **more: Any
) -> AccessBatch:
    return AccessBatch(
        site, space, kind, np.asarray(threads, np.intp), np.asarray(addresses).astype(np.uint64), size, **more
    )


def counted(*accesses: AccessBatch) -> dict[str, int]:
    counters = Counters(1)
    for one in accesses:
        counters.access(one)
    return counters.rows()[0]


def test_a_column_of_shared_memory():
    assert counted(access(Space.SHARED, Kind.READ, LANE, 128 * LANE)) == {
        "shared_load_requests": 1,
        "shared_load_bytes": 128,
        "shared_load_wavefronts": 32,
        "shared_load_ideal_wavefronts": 1,
    }


def test_vector_stores_to_shared_memory():
    assert counted(access(Space.SHARED, Kind.WRITE, range(64), 16 * np.arange(64), 16)) == {
        "shared_store_requests": 2,
        "shared_store_bytes": 1024,
        "shared_store_wavefronts": 8,
        "shared_store_ideal_wavefronts": 8,
    }


def test_a_strided_load_of_global_memory():
    assert counted(access(Space.GLOBAL, Kind.READ, LANE, (7 << 40) + 64 * LANE)) == {
        "global_load_requests": 1,
        "global_load_bytes": 128,
        "global_load_sectors": 32,
        "global_load_ideal_sectors": 4,
    }


def test_a_spilled_register_of_half_a_warp():
    assert counted(access(Space.LOCAL, Kind.WRITE, LANE[:16], 0 * LANE[:16] + 8)) == {
        "local_store_requests": 1,
        "local_store_bytes": 64,
        "local_store_sectors": 2,
        "local_store_ideal_sectors": 2,
    }


@pytest.mark.parametrize("space", [Space.SHARED, Space.GLOBAL])
def test_atomics_on_one_counter_collide(space: Space):
    got = counted(access(space, Kind.ATOMIC, range(40), np.full(40, 256)))
    assert (got["atomics"], got["atomic_collisions"]) == (40, 31 + 7)
    assert got[f"{space.value}_atomic_requests"] == 2
    assert got[f"{space.value}_atomic_bytes"] == 160


def test_atomics_on_different_addresses_do_not():
    got = counted(access(Space.GLOBAL, Kind.ATOMIC, LANE, 4 * LANE))
    assert got["atomics"] == 32
    assert "atomic_collisions" not in got


def test_constants_are_requests_and_bytes():
    assert counted(access(Space.CONST, Kind.READ, LANE, 0 * LANE)) == {
        "const_load_requests": 1,
        "const_load_bytes": 128,
    }


def test_parameters_are_not_counted():
    assert counted(access(Space.PARAM, Kind.WRITE, LANE, 0 * LANE, 8)) == {}


@pytest.mark.parametrize(
    ("space", "kind", "name"),
    [
        (Space.GLOBAL, Kind.READ, "async_global_load_bytes"),
        (Space.GLOBAL, Kind.ATOMIC, "async_global_store_bytes"),
        (Space.SHARED, Kind.WRITE, "async_shared_store_bytes"),
    ],
)
def test_asynchronous_accesses_are_bytes_and_no_requests(space: Space, kind: Kind, name: str):
    assert counted(access(space, kind, [0] * 8, 16 * np.arange(8), 16, proxy=Proxy.ASYNC)) == {name: 128}


def test_an_access_of_no_thread_counts_nothing():
    assert counted(access(Space.GLOBAL, Kind.READ, [], [])) == {}


def test_counts_are_kept_for_each_instruction():
    counters = Counters(3)
    counters.access(access(Space.SHARED, Kind.READ, LANE, 4 * LANE, site=2))
    counters.executed(2, warps=1, threads=32)
    counters.executed(1, warps=4, threads=100, times=3)
    counters.add(1, "shuffles", 4)
    assert counters.rows()[0] == {}
    assert counters.rows()[1] == {"executions": 12, "threads": 300, "shuffles": 4}
    assert counters.value(2, "shared_load_wavefronts") == 1
    assert counters.value(1, "shared_load_wavefronts") == 0
    assert counters.value(1, "wgmma") == 0


RULES = {
    Space.SHARED: counting.wavefronts,
    Space.GLOBAL: counting.sectors,
    Space.LOCAL: counting.local_sectors,
}

THREADS = [
    LANE,
    LANE + 1,  # two warps
    LANE + 16,
    LANE + 64,
    2 * LANE,
    np.concatenate([LANE[:20], LANE[21:], [32]]),
    LANE[:31],
    LANE[1:],
]
"""Sets of threads; two of them may have the same addresses, in order, and count otherwise."""


@pytest.mark.parametrize("space", list(RULES))
@pytest.mark.parametrize("size", [1, 4, 8, 16])
def test_patterns_that_look_alike_count_by_the_rules(space: Space, size: int):
    """One after the other, each twice: whatever was remembered of the others must not be mistaken for this one."""
    counters = Counters(1)
    unit = "wavefronts" if space is Space.SHARED else "sectors"
    transactions = ideal = 0
    for stride in (0, 1, 2, 3, 33):
        for threads in THREADS:
            for start in (0, size, 2 * size, 3 * size, 32, 64 + size):
                addresses = start + size * stride * np.arange(len(threads))
                counts = RULES[space](threads, addresses, size)
                transactions, ideal = transactions + 2 * counts[0], ideal + 2 * counts[1]
                for _ in range(2):
                    counters.access(access(space, Kind.READ, threads, addresses, size))
    assert counters.value(0, f"{space.value}_load_{unit}") == transactions
    assert counters.value(0, f"{space.value}_load_ideal_{unit}") == ideal


def test_a_pattern_is_counted_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []

    def rule(*_: Any) -> tuple[int, int]:
        calls.append(1)
        return 3, 1

    monkeypatch.setitem(module._RULES, Space.SHARED, rule)  # pyright: ignore[reportPrivateUsage]
    counters = Counters(1)
    for start in (0, 4, 8, 1024):
        counters.access(access(Space.SHARED, Kind.READ, LANE + 32, start + 8 * LANE))
        counters.access(access(Space.SHARED, Kind.READ, LANE, start + 8 * LANE))
    assert len(calls) == 1
    counters.access(access(Space.SHARED, Kind.READ, LANE[1:], 8 * LANE[1:]))
    counters.access(access(Space.SHARED, Kind.READ, LANE, 8 * LANE, 8))
    assert len(calls) == 3
    assert counters.value(0, "shared_load_wavefronts") == 30


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED", 4096)
    counters = Counters(1)
    for step in range(100):
        counters.access(access(Space.GLOBAL, Kind.READ, LANE, 4 * step * LANE))
    assert len(counters._known) <= 8  # pyright: ignore[reportPrivateUsage]


# ---- the table of metrics -----------------------------------------------------------------------------------------------


def test_metrics_that_do_not_exist():
    with pytest.raises(ValueError, match=r"^unknown metric 'shared_wavefront'; did you mean 'shared_wavefronts'\?$"):
        check_metric("shared_wavefront")
    with pytest.raises(ValueError, match=r"^unknown metric 'zzz'; weft\.emulator\.profile\.METRICS lists them$"):
        Counters(1).add(0, "zzz", 1)


def test_derived_metrics_are_not_counted():
    message = "metric 'bank_conflicts' is derived from others; it cannot be counted"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Counters(1).add(0, "bank_conflicts", 1)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Counters(1).value(0, "bank_conflicts")


def test_derived_metrics_are_sums_and_differences():
    counts = {
        "shared_load_wavefronts": 40,
        "shared_store_wavefronts": 5,
        "shared_load_ideal_wavefronts": 10,
        "shared_store_ideal_wavefronts": 5,
        "global_atomic_sectors": 9,
    }
    assert value_of("shared_wavefronts", counts) == 45
    assert value_of("bank_conflicts", counts) == 30
    assert value_of("excess_sectors", counts) == 9
    assert value_of("shuffles", counts) == 0


def test_every_metric_is_described():
    assert len({metric.name for metric in METRICS.values()}) == len(METRICS)
    for metric in METRICS.values():
        assert metric.unit
        assert metric.meaning
        assert "{" not in metric.meaning + metric.ncu
        assert all(part in METRICS for part in (*metric.plus, *metric.minus))
    assert METRICS["shared_wavefronts"].ncu == "l1tex__data_pipe_lsu_wavefronts_mem_shared"
    assert METRICS["global_load_sectors"].ncu == "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
    assert METRICS["global_store_sectors"].ncu == "l1tex__t_sectors_pipe_lsu_mem_global_op_st"
    assert METRICS["executions"].ncu == "smsp__inst_executed"
    assert set(COUNTED) < set(METRICS)
