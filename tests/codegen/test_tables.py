"""Completeness of the tables of lowerings: an op without an entry is an omission that no kernel of the tests may show."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.codegen import machine_for
from weft.codegen.emit.elementwise import ELEMENTWISE
from weft.codegen.machine import Machine
from weft.ir import tile
from weft.options import Options
from weft.target import host
from weft.transforms import PIPELINE


def with_trait(trait: type[tile.OpClass]) -> set[type[Operation]]:
    return {op for op in tile.Tile.operations if op.has_trait(trait)}


def test_every_elementwise_op_has_code_for_all_machines() -> None:
    assert set(ELEMENTWISE) == with_trait(tile.Elementwise)


def test_every_op_has_code_on_the_cpu() -> None:
    """All but what only a register loop computes (generators, shape ops, what rearranges, collectives without the dot), and ends
    of regions."""
    in_loops = {tile.SplatOp, tile.ArangeOp, tile.YieldOp, *with_trait(tile.Shape), *with_trait(tile.Collective)}
    in_loops = (in_loops | with_trait(tile.Rearranging)) - {tile.DotOp}
    assert set(tile.Tile.operations) - in_loops <= set(machine_for(host()).lowerings)
    assert not in_loops & set(machine_for(host()).lowerings)


def test_a_machine_begins_with_the_passes_of_all() -> None:
    machine: Machine = machine_for(host())
    names = [one.name for one in machine.passes(Options())]
    assert names[: len(PIPELINE)] == [one.name for one in PIPELINE]
    assert "mark-invariant-loads" not in names


def test_invariant_loads_need_the_promise_and_no_check() -> None:
    """A load may move past a store to another array only where the arrays are disjoint; a checked one reports in order."""
    for checked, disjoint in ((False, False), (True, False), (False, True), (True, True)):
        passes = machine_for(host()).passes(Options(checked=checked, disjoint=disjoint))
        for name in ("mark-invariant-loads", "pack-dots"):
            assert (name in [one.name for one in passes]) == (disjoint and not checked)
