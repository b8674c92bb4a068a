"""Machines as data, for the planner: sizes, instructions, throughputs, latencies, limits of memory.

A `MachineModel` says what a plan may use and what it costs. Nothing in the planner asks for a machine by its name.

Lanes exchange data by one *lane primitive*:

    primitive   what an instruction does                                             machines
    shfl        each lane offers a word and reads the word of any lane of its warp   GPUs
    shuffle     fills a register from any lanes of one or two registers              CPUs

A CPU core is a machine of one warp without shared memory: ``scratch`` is 0, so no plan goes through memory.

Sources of the numbers. Rows marked "unmeasured" are assumptions. They rank plans and predict no time.

    number                                  source
    sizes, shared memory, resident blocks   CUDA C++ Programming Guide, technical specifications per compute capability
    shuffle, logic, schedulers              the same, throughput of native arithmetic instructions
    permutes (``prmt``, ``sel``)            unmeasured: taken to be as fast as 32-bit logic
    one wavefront a clock                   the same guide: 32 banks of 4 bytes a clock
    load from shared memory, 24 clocks      23 on an A100 in arXiv:2208.11174; not measured for the others
    shuffle, 24 clocks                      unmeasured: a shuffle takes the way of a load from shared memory
    barriers                                unmeasured: a block's 20 clocks; a warp's 4, as its lanes have usually converged
    gfx942 sizes, LDS of 128 bytes a clock  AMD CDNA 3 ISA and white paper: 4 units of 16 lanes, 64 KiB, 32 banks
    gfx942 latencies                        unmeasured: 64 clocks for LDS, a barrier of a wave is no instruction
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

LanePrimitive: TypeAlias = Literal["shfl", "shuffle"]
Scope: TypeAlias = Literal["warp", "block"]
"""Who waits at a barrier."""


@dataclass(frozen=True)
class Throughput:
    """What passes through each pipe of a multiprocessor in a clock."""

    shuffle_lanes: float = 32
    """Lanes of shuffles, at ``MachineModel.shuffle_bits`` each. They share a pipe with the wavefronts."""
    permute_lanes: float = 64
    """Lanes of byte permutes, selects and logic."""
    wavefronts: float = 1
    """Wavefronts of shared memory."""
    instructions: float = 4
    """Instructions of a warp that are issued."""
    reduce_lanes: float = 16
    """Lanes of ``redux.sync``; the guide's figure for compute capability 8.0 and later."""


@dataclass(frozen=True)
class Latency:
    """Clocks until what an instruction makes can be used."""

    shuffle: float = 24
    load: float = 24
    """A load from shared memory."""
    permute: float = 5
    """Arithmetic."""
    block_barrier: float = 20
    warp_barrier: float = 4

    def barrier(self, scope: Scope) -> float:
        """Clocks of a barrier, when all who wait have arrived."""
        return self.block_barrier if scope == "block" else self.warp_barrier


@dataclass(frozen=True)
class Residency:
    """What limits how many blocks run on a multiprocessor at once."""

    shared: int = 228 * 1024
    """Bytes of shared memory of a multiprocessor."""
    reserved: int = 1024
    """Bytes of shared memory that the system takes from each block."""
    blocks: int = 32
    warps: int = 64
    registers: int = 64 * 1024
    """Registers of 32 bits of a multiprocessor."""
    registers_per_thread: int = 255

    def resident(self, warps: int, lanes: int, shared: int = 0, registers: int = 0) -> int:
        """The blocks of ``warps`` that run at once, if each takes ``shared`` bytes and ``registers`` a thread; 0 if none can."""
        limits = [self.blocks, self.warps // warps]
        if shared:
            limits.append(self.shared // (shared + self.reserved))
        if registers:
            limits.append(self.registers // (registers * warps * lanes))
        return min(limits)


@dataclass(frozen=True)
class MachineModel:
    """What a plan may use, and the numbers that price it; see the module."""

    name: str
    lanes: int = 32
    """Lanes of a warp; on a CPU, of a vector."""
    lane_primitive: LanePrimitive = "shfl"
    shuffle_bits: int = 32
    """Bits of a lane that one shuffle moves. A ``shuffle`` of a CPU moves an element of any width."""
    banks: int = 32
    bank_bytes: int = 4
    widest: int = 16
    """Bytes of the widest access to shared memory."""
    scratch: int = 48 * 1024
    """Bytes of shared memory that a block may have; 0 on a machine without."""
    ldmatrix: bool = False
    stmatrix: bool = False
    matrix_b8: bool = False
    """Whether ``ldmatrix`` transposes bytes."""
    redux: bool = False
    """Whether one instruction reduces 32-bit integers over a warp."""
    throughput: Throughput = field(default_factory=Throughput)
    latency: Latency = field(default_factory=Latency)
    residency: Residency = field(default_factory=Residency)

    def __hash__(self) -> int:
        """Computed once: a model is a part of the key of every plan that is kept."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, each.name) for each in fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields: hashes of strings differ from process to process."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def wavefront_bytes(self) -> int:
        """Bytes that one wavefront moves at most."""
        return self.banks * self.bank_bytes


AMPERE: Final = MachineModel(
    "sm_80", scratch=163 * 1024, ldmatrix=True, redux=True, residency=Residency(shared=164 * 1024)
)
AMPERE_CONSUMER: Final = MachineModel(
    "sm_86", scratch=99 * 1024, ldmatrix=True, redux=True, residency=Residency(shared=100 * 1024, blocks=16, warps=48)
)
ADA: Final = MachineModel(
    "sm_89", scratch=99 * 1024, ldmatrix=True, redux=True, residency=Residency(shared=100 * 1024, blocks=24, warps=48)
)
HOPPER: Final = MachineModel("sm_90", scratch=227 * 1024, ldmatrix=True, stmatrix=True, redux=True)
CDNA: Final = MachineModel(
    "gfx942",
    lanes=64,
    scratch=64 * 1024,
    # Each of four units issues every fourth clock: a wave's instruction of each kind a clock.
    throughput=Throughput(instructions=1, reduce_lanes=0),
    latency=Latency(shuffle=64, load=64, permute=8, block_barrier=32, warp_barrier=0),
    residency=Residency(
        shared=64 * 1024, reserved=0, blocks=32, warps=32, registers=128 * 1024, registers_per_thread=512
    ),
)


def vector_machine(lanes: int) -> MachineModel:
    """A CPU core: one warp of ``lanes``, two-input shuffles, no shared memory. Only shuffles are counted."""
    return MachineModel("cpu", lanes=lanes, lane_primitive="shuffle", banks=0, widest=0, scratch=0)
