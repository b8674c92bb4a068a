"""What a PTX module says, as data (PTX ISA 4 and 5): modules, functions, instructions, operands.

An instruction is its opcode, its modifiers and its operands, as written. Instructions have no classes of their own, because
some two hundred opcodes have thousands of combinations of modifiers. `weft.emulator.ops` gives them meaning, with one table
entry an opcode. Names are unique within a function: the parser renames what a nested scope declares again.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A line of the source the PTX was compiled from (``.loc``, ``.file``)."""

    file: str
    line: int
    column: int = 0
    inlined_at: Source | None = None
    """Where the function that has this line was called, if it was inlined."""
    function: str = ""
    """The function that has this line, if it was inlined and the PTX names it."""

    @property
    def place(self) -> str:
        """``kernel.cu:12``."""
        return f"{self.file}:{self.line}"

    @property
    def chain(self) -> tuple[Source, ...]:
        """The function's own line from which this one was reached by inlined calls, then line after line to this one."""
        found: list[Source] = [self]
        while (outer := found[-1].inlined_at) is not None:
            found.append(outer)
        return tuple(reversed(found))

    def __str__(self) -> str:
        """The function's own line; and this one, if it was inlined."""
        own = self.chain[0]
        return own.place if own is self else f"{own.place}, inlined {self.place}"


@dataclass(frozen=True)
class Register:
    """A register, or a special register (``%tid.x``, ``%laneid``): the name as declared, ``%`` included."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant: an int (any size, as written, two's complement not yet applied), or a float. ``bits`` is the width of a
    float written by its bits (0f3F800000 is 32, 0d... is 64): ``value`` then is that integer pattern, so that NaNs survive.
    ``bits`` is 0 for everything else."""

    value: int | float
    bits: int = 0


@dataclass(frozen=True)
class Symbol:
    """A variable's address, a label, or a function: a bare name, plus an offset in bytes. (``WARP_SZ`` is `Immediate` 32.)"""

    name: str
    offset: int = 0
    generic: bool = False
    """``generic(name)`` in an initialiser: the generic address."""
    mask: int = 0
    """``0xFF00(name)`` in an initialiser: these bits of the address, shifted to the lowest. 0 is all of it."""


@dataclass(frozen=True)
class Address:
    """``[base + offset]``: the base a register, a symbol or an absolute address (an `Immediate`). Tensor copies add
    ``coordinates`` (``[map, {x, y}]``), and im2col offsets are an operand of their own. Texture fetches may have a ``sampler``
    between (``[texture, sampler, {x, y}]``). ``name[2]`` is ``[name+8]`` of 4-byte elements; ``name[i]`` and ``name[i+1]`` have a
    register ``index`` of elements."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()
    sampler: Register | Symbol | None = None
    index: Register | None = None


@dataclass(frozen=True)
class Vector:
    """``{a, b, c, d}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """``p|q``: a result and a predicate beside it (setp, shfl, match, elect; of tex and tld4 ``{a, b, c, d}|p``)."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Not:
    """``!p``: a predicate operand, negated."""

    register: Register


@dataclass(frozen=True)
class Part:
    """``%r.b0``, ``%r.h10``: bytes or half-words of a register (video instructions)."""

    register: Register
    part: str


@dataclass(frozen=True)
class Minus:
    """``-%r``: an operand of vmad, negated; perhaps a `Part`."""

    operand: Register | Part


@dataclass(frozen=True)
class Sink:
    """``_``: a result that is discarded."""


@dataclass(frozen=True)
class Group:
    """``(a, b)``: the results or arguments of a call. A call's operands are results, target, arguments and, where one is
    written, the prototype or table; the groups are there (and empty) when nothing is written."""

    elements: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Not | Part | Minus | Sink | Group


@dataclass(frozen=True)
class Guard:
    """``@p`` or ``@!p``."""

    register: str
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``opcode`` is its first word (``wgmma`` of ``wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16``),
    ``modifiers`` the others, without dots, in the order of `weft.emulator.ptx.spelling.spelled` (``cp.async.bulk`` is opcode
    ``cp``; ``::`` stays in a modifier: ``shared::cta``, ``mbarrier::complete_tx::bytes``)."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    """Its line in the PTX, from 1."""
    source: Source | None
    text: str
    """As written, on one line, without the semicolon."""

    @property
    def name(self) -> str:
        """Opcode and modifiers, in that order."""
        return ".".join((self.opcode, *self.modifiers))

    def has(self, *modifiers: str) -> bool:
        """Whether it has all of these modifiers."""
        return all(modifier in self.modifiers for modifier in modifiers)


@dataclass(frozen=True)
class Variable:
    """A variable in a state space, or a parameter (space ``param``)."""

    name: str
    space: str
    """reg, global, const, shared, local or param."""
    type: str
    """Of an element: ``b8``, ``f32``, ``pred``, ``texref``, ..."""
    count: int | None = 1
    """Elements in all, each of them a whole vector where there is one; None for an array of unknown size (``extern .shared ...
    name[]``)."""
    align: int = 1
    """Bytes."""
    vector: int = 1
    """2 or 4 for ``.v2``, ``.v4``."""
    initial: tuple[int | float | Symbol | Immediate, ...] = ()
    """Initialisers, one for each element given; elements beyond them are zero."""
    external: bool = False
    pointer: bool = False
    """A kernel parameter declared ``.ptr``."""
    array: bool = False
    line: int = 0


@dataclass(frozen=True)
class Function:
    """A kernel (``entry``) or a device function."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    registers: dict[str, str]
    """Type of each register, scopes' registers too."""
    variables: tuple[Variable, ...]
    """What it declares in shared, local, param, ... space."""
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """Index of the instruction each label stands before (one past the last for a label at the end)."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """``.branchtargets`` and ``.calltargets``: labels or function names."""
    prototypes: dict[str, Function] = field(default_factory=dict[str, "Function"])
    """``.callprototype``: parameters and results of an indirect call."""
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """``maxntid``, ``reqntid``, ``minnctapersm``, ``maxnreg``, ``reqnctapercluster``, ...: their numbers."""
    declared: bool = False
    """Only declared (``.extern .func vprintf``): there is no body."""
    line: int = 0


@dataclass(frozen=True)
class Module:
    """A PTX module."""

    version: tuple[int, int]
    target: tuple[str, ...]
    """``sm_90a`` and whatever stands beside it."""
    address_size: int
    variables: dict[str, Variable]
    functions: dict[str, Function]
    text: str
    files: dict[int, str] = field(default_factory=dict[int, str])
    """``.file`` numbers to names."""
