"""What is counted, as a table: each metric's name, unit, meaning, rule, and what Nsight Compute calls it.

Tables, reports, JSON, the documentation and error messages print from here, so a metric is described once. Metrics are counts,
and every count is a sum over instructions: a source line's is the sum over its instructions, a kernel's over all. What is
a sum or a difference of others is derived: `Metric.plus` and `Metric.minus` say of what.

Names are ``space_kind_quantity`` for one kind of access (``shared_load_wavefronts``), ``space_quantity`` for all kinds of a
space (``shared_wavefronts``). Rules that need more than a line are in `weft.emulator.profile.counting`. The profiler's names
are those of Nsight Compute (Profiling Guide, "Metrics Decoder"; ``ncu --query-metrics``), counters as their ``.sum``. It counts
machine instructions (SASS), we count PTX's, of which ptxas makes other ones: of what it leaves alone (accesses to memory
that are not merged, widened or removed) the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.nearest import did_you_mean


@dataclass(frozen=True)
class Metric:
    """A row of the table."""

    name: str
    unit: str
    meaning: str
    ncu: str = ""
    """The profiler's counter of the same thing, "" where it has none."""
    plus: tuple[str, ...] = ()
    """What a derived metric is the sum of; () for what is counted."""
    minus: tuple[str, ...] = ()
    """What is then taken away."""

    @property
    def derived(self) -> bool:
        return bool(self.plus)


_WORDS: Final = {"load": "loads", "store": "stores", "atomic": "atomics and reductions"}
_NCU_KIND: Final = {"load": "ld", "store": "st", "atomic": "atom"}

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "shared": ("load", "store", "atomic"),
    "global": ("load", "store", "atomic"),
    "local": ("load", "store"),
    "const": ("load",),
}
"""How each space may be accessed. Parameters are not counted: kernels' lie in constant memory, functions' in registers."""

QUANTITIES: Final[dict[str, tuple[str, ...]]] = {
    "shared": ("requests", "bytes", "wavefronts", "ideal_wavefronts"),
    "global": ("requests", "bytes", "sectors", "ideal_sectors"),
    "local": ("requests", "bytes", "sectors", "ideal_sectors"),
    "const": ("requests", "bytes"),
}
"""What is counted of accesses to each space."""

_MEANINGS: Final[dict[str, tuple[str, str]]] = {
    "requests": ("request", "{kinds} of {space} memory, one per warp and execution"),
    "bytes": ("byte", "bytes that active threads ask for in {kinds} of {space} memory, the same byte twice if two do"),
    "wavefronts": ("wavefront", "passes over the banks that {kinds} take: per phase the most distinct words in a bank"),
    "ideal_wavefronts": ("wavefront", "the passes that {kinds} would take without bank conflicts: one per phase"),
    "sectors": ("sector", "32-byte sectors that {kinds} of {space} memory touch, per warp and execution"),
    "ideal_sectors": ("sector", "the sectors that {kinds} would touch if a warp's bytes lay side by side"),
}

_NCU: Final[dict[tuple[str, str], str]] = {
    ("shared", "requests"): "smsp__inst_executed_op_shared_{op}",
    ("shared", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}",
    ("global", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_{op}",
    ("global", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_{op}",
    ("local", "requests"): "l1tex__t_requests_pipe_lsu_mem_local_op_{op}",
    ("local", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_local_op_{op}",
}

_NCU_SPACE: Final[dict[str, str]] = {
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared",
    "shared_ideal_wavefronts": "memory_l1_wavefronts_shared_ideal",
    "global_sectors": "memory_l2_theoretical_sectors_global",
    "global_ideal_sectors": "memory_l2_theoretical_sectors_global_ideal",
}


def _accesses() -> list[Metric]:
    """The metrics of each space and kind, and their sums over the kinds."""
    rows: list[Metric] = []
    for space, kinds in KINDS.items():
        for quantity in QUANTITIES[space]:
            unit, meaning = _MEANINGS[quantity]
            for kind in kinds:
                ncu = _NCU.get((space, quantity), "").format(op=_NCU_KIND[kind])
                if (space, kind) == ("global", "atomic") and ncu:
                    ncu += " + " + ncu.replace("_atom", "_red")
                text = meaning.format(kinds=_WORDS[kind], space=space)
                rows.append(Metric(f"{space}_{kind}_{quantity}", unit, text, ncu))
            if len(kinds) > 1:
                parts = tuple(f"{space}_{kind}_{quantity}" for kind in kinds)
                text = meaning.format(kinds="accesses", space=space).replace("accesses of", "accesses to")
                rows.append(
                    Metric(f"{space}_{quantity}", unit, text, _NCU_SPACE.get(f"{space}_{quantity}", ""), plus=parts)
                )
    return rows


_ASYNC: Final = tuple(
    Metric(
        f"async_{space}_{kind}_bytes",
        "byte",
        f"bytes of {space} memory that bulk copies, tensor copies and wgmma {verb}; not part of {space}_bytes",
    )
    for space in ("global", "shared")
    for kind, verb in (("load", "read"), ("store", "write"))
) + tuple(
    Metric(
        f"async_global_{kind}_sectors",
        "sector",
        f"32-byte sectors of global memory that bulk and tensor copies {verb}, each once a copy; not part of global_sectors",
    )
    for kind, verb in (("load", "read"), ("store", "write"))
)

_TABLE: Final = (
    Metric(
        "executions",
        "warp",
        "times a warp executed an instruction, whatever its guard lets through",
        "smsp__inst_executed",
    ),
    Metric(
        "threads",
        "thread",
        "threads that executed an instruction, over all warps",
        "smsp__thread_inst_executed_pred_on",
    ),
    *_accesses(),
    Metric(
        "bank_conflicts",
        "wavefront",
        "wavefronts beyond the ideal",
        "derived__memory_l1_wavefronts_shared_excessive",
        plus=("shared_wavefronts",),
        minus=("shared_ideal_wavefronts",),
    ),
    Metric(
        "excess_sectors",
        "sector",
        "sectors of global memory beyond the ideal: uncoalesced accesses",
        "derived__memory_l2_theoretical_sectors_global_excessive",
        plus=("global_sectors",),
        minus=("global_ideal_sectors",),
    ),
    *_ASYNC,
    Metric("atomics", "operation", "atomic operations of threads, on any memory"),
    Metric(
        "atomic_collisions",
        "operation",
        "atomics of a thread whose address another lane of its warp has in the same execution",
    ),
    Metric("shuffles", "warp", "shuffles: shfl"),
    Metric("votes", "warp", "votes, matches and warp-wide reductions: vote, match, redux"),
    Metric("barriers", "warp", "arrivals of warps at barriers: bar, barrier"),
    Metric("mma", "warp", "matrix instructions of a warp: mma"),
    Metric("wgmma", "warp group", "matrix instructions of four warps: wgmma.mma_async"),
    Metric("tcgen05", "thread", "matrix instructions that a thread begins: tcgen05.mma"),
    Metric("matrix_flops", "operation", "multiplications and additions in matrix instructions: 2 m n k each"),
    Metric(
        "thread_flops", "operation", "operations on floats in other instructions: an fma is two, a pair counts twice"
    ),
    Metric("flops", "operation", "operations on floats", plus=("matrix_flops", "thread_flops")),
)

METRICS: Final[dict[str, Metric]] = {metric.name: metric for metric in _TABLE}
"""Every metric by its name, in the order reports have."""

COUNTED: Final = tuple(name for name, metric in METRICS.items() if not metric.derived)
"""Those that are counted; the others follow."""


def check_metric(name: str) -> str:
    """The name; `ValueError` with the nearest one if there is no such metric."""
    if name not in METRICS:
        hint = did_you_mean(name, METRICS, "weft.emulator.profile.METRICS lists them")
        raise ValueError(f"unknown metric '{name}'; {hint}")
    return name


def value_of(name: str, counts: Mapping[str, int]) -> int:
    """A metric's value, counted or derived, where ``counts`` has what was counted and is not zero."""
    metric = METRICS.get(name)
    if metric is None:
        check_metric(name)
        raise AssertionError
    if not metric.plus:
        return counts.get(name, 0)
    return sum(value_of(part, counts) for part in metric.plus) - sum(value_of(part, counts) for part in metric.minus)
