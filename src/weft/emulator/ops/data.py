"""Values from one place to another: mov, pack and unpack, addresses of one space as another's (PTX ISA 9.7.9)."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.machine.binding import Binding
from weft.emulator.machine.special import VECTORS
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.cluster import RANK
from weft.emulator.memory.memory import WINDOW
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.syntax import Register, Sink, Vector
from weft.emulator.ptx.types import TYPES

SPACES: Final = {
    "const": Space.CONST,
    "global": Space.GLOBAL,
    "local": Space.LOCAL,
    "param": Space.PARAM,
    "param::entry": Space.PARAM,
    "shared": Space.SHARED,
    "shared::cta": Space.SHARED,
    "shared::cluster": Space.SHARED,
}
"""State spaces by their modifier. Addresses of shared::cta are addresses of shared::cluster (`weft.emulator.memory.cluster`)."""


@instruction("mov")
def mov(b: Binding) -> Step:
    """``mov d, a``; with a vector on one side it splits a value into equal parts, or joins them, the first lowest."""
    source = b.operand(1)
    if isinstance(source, Register) and source.name in VECTORS:
        return _components(b, source.name)
    b.only()
    b.count(2)
    kind = b.type()
    if isinstance(b.operands[1], Vector):
        return _pack(b)
    if isinstance(b.operands[0], Vector):
        return _unpack(b)
    read = b.reader(1, kind)
    target = b.write(0, kind)
    return lambda active: masked(target, read(), active)


def _components(b: Binding, name: str) -> Step:
    """``mov.v4.u32 {a, b, c, d}, %tid``: a special register of four components."""
    b.only("v4")
    b.count(2)
    parts, kind = b.elements(0), TYPES["u32"]
    b.require("v4" in b.modifiers and b.type().bits == 32, f"{name} is moved by mov.v4.u32")
    b.require(len(parts) == 4, f"{len(parts)} results for 4 components")
    moves = [
        (b.write(part, kind), b.read(Register(f"{name}.{axis}"), kind))
        for part, axis in zip(parts, "xyzw", strict=True)
        if not isinstance(part, Sink)
    ]

    def run(active: Active) -> None:
        for target, values in moves:
            masked(target, values, active)

    return run


def _pack(b: Binding) -> Step:
    """Parts are written into the result's bytes, one after the other: of 8 bits or more each."""
    kind, parts = b.type(), b.elements(1)
    width = _part(b, len(parts))
    inner = TYPES[f"b{width}"]
    sources = [b.read(part, inner) for part in parts]
    whole = b.write(0, kind)
    threads = b.execution.threads

    def run(active: Active) -> None:
        joined = np.empty((threads, len(parts)), inner.numpy)
        for i, source in enumerate(sources):
            joined[:, i] = source
        values = joined.view(kind.numpy)
        masked(whole, values if kind.bits == 128 else values[:, 0], active)

    return run


def _unpack(b: Binding) -> Step:
    kind, parts = b.type(), b.elements(0)
    width = _part(b, len(parts))
    inner = TYPES[f"b{width}"]
    source = b.read(1, kind)
    targets = [(i, b.write(part, inner)) for i, part in enumerate(parts) if not isinstance(part, Sink)]
    threads = b.execution.threads

    def run(active: Active) -> None:
        shape = (threads, 2) if kind.bits == 128 else (threads,)
        values = np.broadcast_to(source, shape).copy().view(inner.numpy).reshape(threads, -1)
        for i, target in targets:
            masked(target, values[:, i], active)

    return run


def _part(b: Binding, parts: int) -> int:
    bits = b.type().bits
    if parts not in (2, 4, 8) or bits // parts < 8:
        b.wrong(f"{bits} bits cannot be {parts} parts")
    return bits // parts


@instruction("cvta")
def cvta(b: Binding) -> Step:
    """A space's address as a generic one, or with ``.to`` the other way round."""
    b.count(2)
    b.only("to", *SPACES)
    (space,) = [SPACES[m] for m in b.modifiers if m in SPACES] or [None]
    if space is None:
        b.unknown("cvta without a state space")
    kind = b.type()
    offset = np.array(0 if space is Space.GLOBAL else WINDOW[space], np.uint64).astype(kind.numpy)
    if kind.bits == 32 and space is not Space.GLOBAL:
        b.unknown("32-bit generic addresses")
    source, target = b.reader(1, kind), b.write(0, kind)
    if "to" in b.modifiers:
        return lambda active: masked(target, source() - offset, active)
    return lambda active: masked(target, source() + offset, active)


@instruction("mapa")
def mapa(b: Binding) -> Step:
    """The address of the same byte of shared memory in a block of the cluster, by its rank."""
    b.count(3)
    b.only("shared::cluster")
    kind = b.type()
    source, ranks, target = b.reader(1, kind), b.read(2, TYPES["u32"]), b.write(0, kind)
    execution, site = b.execution, b.site
    clusters = execution.memory.clusters
    size = 1 if clusters is None else clusters.size

    def step(active: Active) -> None:
        outside = active.mask & (ranks >= size)
        if outside.any():
            thread = int(outside.nonzero()[0][0])
            rank = int(np.broadcast_to(ranks, outside.shape)[thread])
            message = f"mapa of rank {rank}; the cluster has {size} block{'' if size == 1 else 's'}"
            raise execution.fault(Undefined, message, site, thread)
        addresses = source()
        if clusters is not None:
            low = addresses & np.array(~(0xFF << RANK) & ((1 << kind.bits) - 1), kind.numpy)
            addresses = low | (ranks.astype(kind.numpy) << np.array(RANK, kind.numpy))
        masked(target, addresses, active)

    return step


@instruction("getctarank")
def getctarank(b: Binding) -> Step:
    """The rank of the block that an address of shared memory belongs to."""
    b.count(2)
    b.only("shared::cluster")
    kind = b.type()
    source, target = b.reader(1, kind), b.write(0, TYPES["u32"])
    return lambda active: masked(target, (source() >> np.array(RANK, kind.numpy)) & np.array(0xFF, kind.numpy), active)


@instruction("isspacep")
def isspacep(b: Binding) -> Step:
    """Whether a generic address lies in a space's window."""
    b.count(2)
    b.only(*SPACES)
    (space,) = [SPACES[m] for m in b.modifiers if m in SPACES] or [Space.GLOBAL]
    source, target = b.read(1, TYPES["u64"]), b.write(0, TYPES["pred"])
    window = np.uint64(WINDOW[space] >> 32)
    clusters = b.execution.memory.clusters
    if space is Space.SHARED and clusters is not None:
        own = np.uint64(WINDOW[space]) + clusters.base
        blocks = np.uint64(1) if "shared::cluster" not in b.modifiers else np.uint64(clusters.size)
        first = own if blocks == 1 else np.full_like(own, WINDOW[space])
        return lambda active: masked(target, source - first < blocks << np.uint64(RANK), active)
    if space is Space.GLOBAL:
        return lambda active: masked(target, (source >> np.uint64(32)) >= window, active)
    return lambda active: masked(target, (source >> np.uint64(32)) == window, active)
