"""Random programs of a warp's lanes that diverge and talk to each other, and a model that runs them lane by lane.

A statement knows its CUDA C++ and what it does to a `Warp`, whose variables are lists of 32 Python integers; the two are written
from the CUDA Programming Guide's descriptions of shuffles, votes, matches and reductions. Each place knows its lanes' mask, a
variable that a ballot (or a match) computed before the lanes parted, so that everything here is defined. Lanes that return
early stay in the masks, as the guide allows; but no lane reads from them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

WARPS: Final = 3
M32: Final = 2**32 - 1
VARIABLES: Final = 5

PRELUDE: Final = """#include <cstdint>
typedef uint32_t u32; typedef unsigned long long u64; typedef int32_t i32;
#ifndef WARP_HELPERS
#define WARP_HELPERS
#define LANE (threadIdx.x & 31)
__device__ __forceinline__ u32 pick(u32 m, u32 x) { u32 here = __ballot_sync(m, 1); return here >> (x & 31) & 1 ? x & 31 : LANE; }
__device__ __noinline__ u32 meet(u32 m, u32 x) { return __shfl_sync(m, x, pick(m, x * 7)) + 3 * __popc(__ballot_sync(m, x & 1)); }
__device__ __noinline__ u32 countdown(u32 m, u32 x) {
  u32 r = 0;
  for (u32 left = x & 3;; left--) {
    m = __ballot_sync(m, left != 0);
    if (!left) return r;
    r = r * 5 + __reduce_add_sync(m, x + left);
  }
}
__device__ __forceinline__ u32 all_same(u32 m, u32 x) { int same; u32 r = __match_all_sync(m, x, &same); return r + same; }
#define ASM_SHUFFLE(mode) __device__ __forceinline__ u32 mode##_inside(u32 m, u32 x, u32 k, u32 c) { \\
  u32 r, p; asm volatile("{.reg .pred q; shfl.sync." #mode ".b32 %0|q, %2, %3, %4, %5; selp.u32 %1, 1, 0, q;}" \\
  : "=r"(r), "=r"(p) : "r"(x), "r"(k), "r"(c), "r"(m)); return r * 2 + p; }
ASM_SHUFFLE(up)
ASM_SHUFFLE(down)
ASM_SHUFFLE(bfly)
ASM_SHUFFLE(idx)
#endif
"""


@dataclass
class Warp:
    """The lanes of a warp."""

    number: int
    v: list[list[int]]
    """Variables, by number and lane."""
    alive: set[int] = field(default_factory=lambda: set(range(32)))
    shared: list[int] = field(default_factory=lambda: [0] * 32)

    def ballot(self, lanes: set[int]) -> int:
        return sum(1 << lane for lane in lanes)


Value = Callable[[Warp, int], int]
"""An expression: what it is in a lane."""
Run = Callable[[Warp, set[int]], None]
"""A statement: what it does to a warp, executed by those lanes of the set that are alive."""


@dataclass(frozen=True)
class Expression:
    text: str
    value: Value


@dataclass(frozen=True)
class Statement:
    lines: list[str]
    run: Run
    block: bool = False
    """Executed by all warps together: `run` is told by a set without lanes that the first half, up to the barrier, is meant."""


def _sequence(statements: list[Statement]) -> Run:
    def run(warp: Warp, lanes: set[int]) -> None:
        for statement in statements:
            if here := lanes & warp.alive:
                statement.run(warp, here)

    return run


def _lines(statements: list[Statement]) -> list[str]:
    return ["  " + line for statement in statements for line in statement.lines]


def _select(warp: Warp, lanes: set[int], lane: int, x: int) -> int:
    """``pick``"""
    return x & 31 if x & 31 in lanes else lane


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda x, y: x + y & M32,
    "-": lambda x, y: x - y & M32,
    "*": lambda x, y: x * y & M32,
    "^": lambda x, y: x ^ y,
    "&": lambda x, y: x & y,
    "<": lambda x, y: int(x < y),
    "==": lambda x, y: int(x == y),
}


def _signed(x: int) -> int:
    return x - 2**32 if x >> 31 else x


_REDUCTIONS: Final[dict[str, tuple[str, Callable[[list[int]], int]]]] = {
    "add": ("u32", lambda xs: sum(xs) & M32),
    "min": ("u32", min),
    "max": ("u32", max),
    "and": ("u32", lambda xs: reduce(lambda x, y: x & y, xs)),
    "or": ("u32", lambda xs: reduce(lambda x, y: x | y, xs)),
    "xor": ("u32", lambda xs: reduce(lambda x, y: x ^ y, xs)),
    "min ": ("i32", lambda xs: min(map(_signed, xs)) & M32),
    "max ": ("i32", lambda xs: max(map(_signed, xs)) & M32),
    "add ": ("i32", lambda xs: sum(map(_signed, xs)) & M32),
}

_ATOMICS: Final[dict[str, Callable[[int, int], int]]] = {
    "Add": lambda x, y: x + y & M32,
    "Max": max,
    "Xor": lambda x, y: x ^ y,
    "Or": lambda x, y: x | y,
}
_INSIDE: Final = ("up", "down", "bfly", "idx")


def _source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """shfl's source lane and predicate, by the PTX ISA's pseudo-code; ``c`` packs the clamp and the segment's mask."""
    b, cval, segment = b & 31, c & 31, c >> 8 & 31
    highest = (lane & segment) | (cval & ~segment)
    lowest = lane & segment
    match mode:
        case "up":
            j = lane - b
            inside = j >= highest
        case "down":
            j = lane + b
            inside = j <= highest
        case "bfly":
            j = lane ^ b
            inside = j <= highest
        case _:
            j = lowest | (b & ~segment)
            inside = j <= highest
    return (j if inside else lane), inside


@dataclass
class Maker:
    """Writes one program."""

    rng: random.Random
    full: bool = True
    """Whether all lanes are alive, and, at the top, here."""
    masks: int = 0
    others: list[dict[int, Warp]] = field(default_factory=list[dict[int, Warp]])
    """For each barrier of the block: where its statement finds the warps."""

    # ---- expressions ------------------------------------------------------------------------------------------------

    def expression(self, depth: int = 2) -> Expression:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            match rng.randrange(4):
                case 0:
                    number = rng.choice([0, 1, 2, 3, 5, 17, 31, 32, M32, rng.getrandbits(32)])
                    return Expression(f"{number}u", lambda _w, _l: number)
                case 1:
                    return Expression("LANE", lambda _w, lane: lane)
                case _:
                    which = rng.randrange(VARIABLES)
                    return Expression(f"v{which}", lambda warp, lane: warp.v[which][lane])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        operation = rng.choice(list(_OPERATIONS))
        function = _OPERATIONS[operation]
        return Expression(
            f"((u32)({left.text} {operation} {right.text}))",
            lambda warp, lane: function(left.value(warp, lane), right.value(warp, lane)),
        )

    def mask(self) -> str:
        self.masks += 1
        return f"m{self.masks}"

    # ---- statements -------------------------------------------------------------------------------------------------

    def assign(self, text: str, value: Callable[[Warp, int, set[int]], int]) -> Statement:
        """``v = text``, where the value may depend on all lanes that are here."""
        which = self.rng.randrange(VARIABLES)

        def run(warp: Warp, lanes: set[int]) -> None:
            values = {lane: value(warp, lane, lanes) & M32 for lane in lanes}
            for lane, result in values.items():
                warp.v[which][lane] = result

        return Statement([f"v{which} = {text};"], run)

    def plain(self) -> Statement:
        e = self.expression(3)
        return self.assign(e.text, lambda warp, lane, _: e.value(warp, lane))

    def collective(self, m: str, here: bool) -> Statement:
        """A shuffle, vote, match or reduction; ``here``: all 32 lanes are sure to execute it."""
        rng, x, y = self.rng, self.expression(), self.expression()
        match rng.randrange(13 if here else 10):
            case 0 | 1:

                def shuffled(warp: Warp, lane: int, lanes: set[int]) -> int:
                    return x.value(warp, _select(warp, lanes, lane, y.value(warp, lane)))

                if rng.random() < 0.5:
                    return self.assign(f"__shfl_sync({m}, {x.text}, pick({m}, {y.text}))", shuffled)
                text = f"(u32)(__shfl_sync({m}, (u64){x.text} << 17, pick({m}, {y.text})) >> 17)"
                return self.assign(text, shuffled)
            case 2:
                return self.assign(
                    f"__ballot_sync({m}, {x.text})", lambda w, _, ls: w.ballot({i for i in ls if x.value(w, i)})
                )
            case 3:
                text = f"__any_sync({m}, {x.text} < {y.text}) * 2 + __all_sync({m}, {x.text} & 1)"
                return self.assign(
                    text,
                    lambda w, _, ls: (
                        2 * any(x.value(w, i) < y.value(w, i) for i in ls) + all(x.value(w, i) & 1 for i in ls)
                    ),
                )
            case 4 | 5:
                wide = rng.random() < 0.5
                text = f"__match_any_sync({m}, {f'(u64){x.text} << 30' if wide else x.text})"
                return self.assign(text, lambda w, k, ls: w.ballot({i for i in ls if x.value(w, i) == x.value(w, k)}))
            case 6:

                def same(warp: Warp, _: int, lanes: set[int]) -> int:
                    if len({x.value(warp, i) for i in lanes}) > 1:
                        return 0
                    return warp.ballot(lanes) + 1

                # The mask may name lanes that are gone, and whether the result does is not documented.
                return self.assign(f"all_same(__ballot_sync({m}, 1), {x.text})", same)
            case 7:
                name = rng.choice(list(_REDUCTIONS))
                kind, function = _REDUCTIONS[name]
                text = f"__reduce_{name.strip()}_sync({m}, ({kind}){x.text})"
                return self.assign(text, lambda w, _, ls: function([x.value(w, i) for i in ls]))
            case 8:

                def met(warp: Warp, lane: int, lanes: set[int]) -> int:
                    source = _select(warp, lanes, lane, x.value(warp, lane) * 7 & M32)
                    return x.value(warp, source) + 3 * sum(x.value(warp, i) & 1 for i in lanes)

                return self.assign(f"meet({m}, {x.text})", met)
            case 9:

                def counted(warp: Warp, lane: int, lanes: set[int]) -> int:
                    result = 0
                    for step in range(x.value(warp, lane) & 3):
                        inside = [i for i in lanes if x.value(warp, i) & 3 > step]
                        result = result * 5 + sum(x.value(warp, i) + (x.value(warp, i) & 3) - step for i in inside)
                    return result & M32

                return self.assign(f"countdown({m}, {x.text})", counted)
            case 10:
                mode = rng.choice(("up", "down", "xor"))
                width, k = 1 << rng.randrange(1, 6), rng.randrange(32)
                c = ((32 - width) << 8) | (0 if mode == "up" else 31)
                text = f"__shfl_{mode}_sync({m}, {x.text}, {k}, {width})"
                ptx = "bfly" if mode == "xor" else mode
                return self.assign(text, lambda w, lane, _: x.value(w, _source(ptx, lane, k, c)[0]))
            case _:
                mode = rng.choice(_INSIDE)
                width, k = 1 << rng.randrange(6), rng.randrange(32)
                c = ((32 - width) << 8) | (0 if mode == "up" else rng.choice([31, 31, rng.randrange(32)]))

                def inside(warp: Warp, lane: int, _: set[int]) -> int:
                    source, there = _source(mode, lane, k, c)
                    return x.value(warp, source) * 2 + there

                return self.assign(f"{mode}_inside({m}, {x.text}, {k}, {c})", inside)

    def exchange(self, m: str) -> Statement:
        """Through the warp's part of shared memory."""
        which, x, y = self.rng.randrange(VARIABLES), self.expression(), self.expression()

        def run(warp: Warp, lanes: set[int]) -> None:
            for lane in lanes:
                warp.shared[lane] = x.value(warp, lane)
            results = {i: warp.shared[_select(warp, lanes, i, y.value(warp, i))] for i in lanes}
            for lane, value in results.items():
                warp.v[which][lane] = value

        lines = [
            f"mine[LANE] = {x.text}; __syncwarp({m});",
            f"{{ u32 t = mine[pick({m}, {y.text})]; __syncwarp({m}); v{which} = t; }}",
        ]
        return Statement(lines, run)

    def atomic(self, m: str) -> Statement:
        """Atomics of the lanes on each other's words."""
        which, x, y = self.rng.randrange(VARIABLES), self.expression(), self.expression()
        name = self.rng.choice(list(_ATOMICS))
        function = _ATOMICS[name]

        def run(warp: Warp, lanes: set[int]) -> None:
            for lane in lanes:
                place = _select(warp, lanes, lane, y.value(warp, lane))
                warp.shared[place] = function(warp.shared[place], x.value(warp, lane))
            for lane in lanes:
                warp.v[which][lane] = warp.shared[lane]

        lines = [
            f"atomic{name}(&mine[pick({m}, {y.text})], {x.text}); __syncwarp({m}); v{which} = mine[LANE]; __syncwarp({m});"
        ]
        return Statement(lines, run)

    def branch(self, m: str, depth: int) -> Statement:
        c = self.expression()
        yes, no = self.mask(), self.mask()
        then, other = self.body(yes, depth - 1, 2), self.body(no, depth - 1, self.rng.randrange(3))

        def run(warp: Warp, lanes: set[int]) -> None:
            chosen = {i for i in lanes if c.value(warp, i) & 1}
            _sequence(then)(warp, chosen)
            _sequence(other)(warp, lanes - chosen)

        lines = [f"bool c{yes} = {c.text} & 1; u32 {yes} = __ballot_sync({m}, c{yes}), {no} = {m} & ~{yes};"]
        lines += [f"if (c{yes}) {{", *_lines(then), "} else {", *_lines(other), "}"]
        return Statement(lines, run)

    def switch(self, m: str, depth: int) -> Statement:
        c, mine = self.expression(), self.mask()
        cases = [self.body(mine, depth - 1, 1) for _ in range(3)]

        def run(warp: Warp, lanes: set[int]) -> None:
            values = {i: c.value(warp, i) & 3 for i in lanes}
            for number, body in enumerate(cases):
                _sequence(body)(warp, {i for i in lanes if values[i] == number})

        lines = [f"u32 c{mine} = {c.text} & 3; u32 {mine} = __match_any_sync({m}, c{mine});", f"switch (c{mine}) {{"]
        for number, body in enumerate(cases):
            lines += [f"case {number}:", *_lines(body), "break;"]
        return Statement([*lines, "}"], run)

    def loop(self, m: str, depth: int) -> Statement:
        c, inside = self.expression(), self.mask()
        body = self.body(inside, depth - 1, 2)

        def run(warp: Warp, lanes: set[int]) -> None:
            trips = {i: c.value(warp, i) & 3 for i in lanes}
            for number in range(4):
                _sequence(body)(warp, {i for i in lanes & warp.alive if trips[i] > number})

        lines = [f"u32 {inside} = {m}, c{inside} = {c.text} & 3;", f"for (u32 i = 0;; i++) {{ bool go = i < c{inside};"]
        lines += [f"{inside} = __ballot_sync({inside}, go); if (!go) break;", *_lines(body), "}"]
        return Statement(lines, run)

    def leave(self) -> Statement:
        c = self.expression()
        self.full = False

        def run(warp: Warp, lanes: set[int]) -> None:
            warp.alive -= {i for i in lanes if c.value(warp, i) % 5 == 0}

        return Statement([f"if ({c.text} % 5 == 0) {{ KEEP; return; }}"], run)

    def body(self, m: str, depth: int, count: int) -> list[Statement]:
        return [self.statement(m, depth) for _ in range(count)]

    def statement(self, m: str, depth: int) -> Statement:
        rng, here = self.rng, m == "m0" and self.full
        match rng.randrange(16):
            case 0 | 1:
                return self.plain()
            case 2:
                return self.exchange(m)
            case 3:
                return self.atomic(m)
            case 4 | 5 | 6 if depth > 0:
                return self.branch(m, depth)
            case 7 | 8 if depth > 0:
                return self.loop(m, depth)
            case 9 if depth > 0:
                return self.switch(m, depth)
            case 10 if rng.random() < 0.5:
                return self.leave()
            case _:
                return self.collective(m, here)

    def meeting(self) -> Statement:
        """Through all warps' shared memory, at a barrier of the block."""
        which, x, y = self.rng.randrange(VARIABLES), self.expression(), self.expression()
        others: dict[int, Warp] = {}

        def run(warp: Warp, lanes: set[int]) -> None:
            if not lanes:  # the first half
                warp.shared = [x.value(warp, i) if i in warp.alive else old for i, old in enumerate(warp.shared)]
                return
            for lane in lanes:
                place = y.value(warp, lane) % (32 * WARPS)
                warp.v[which][lane] = others[place // 32].shared[place % 32]

        lines = [f"mine[LANE] = {x.text}; __syncthreads();"]
        lines += [f"{{ u32 t = part[{y.text} % {32 * WARPS}]; __syncthreads(); v{which} = t; }}"]
        if self.rng.random() < 0.5:
            return self.block_vote(which, x)
        statement = Statement(lines, run, block=True)
        self.others.append(others)
        return statement

    def block_vote(self, which: int, x: Expression) -> Statement:
        """Of all threads that have not ended."""
        name, function = self.rng.choice([("count", sum), ("and", all), ("or", any)])
        convert = "" if name == "count" else "!!"
        votes: dict[int, list[bool]] = {}

        def run(warp: Warp, lanes: set[int]) -> None:
            if not lanes:
                votes[warp.number] = [x.value(warp, i) & 1 == 1 for i in warp.alive]
                return
            result = function(vote for number in range(WARPS) for vote in votes[number])
            for lane in lanes:
                warp.v[which][lane] = int(result)

        return Statement([f"v{which} = {convert}__syncthreads_{name}({x.text} & 1);"], run, block=True)


@dataclass
class WarpProgram:
    """A generated program."""

    name: str
    text: str
    statements: list[Statement]
    others: list[dict[int, Warp]]
    seed: int

    def inputs(self) -> NDArray[np.uint32]:
        """What the variables of each thread start with; small numbers and bits, many of them equal."""
        rng = np.random.default_rng(self.seed)
        values = rng.integers(0, 2**32, (32 * WARPS, VARIABLES), np.uint32)
        small = rng.integers(0, 6, values.shape, np.uint32)
        return np.where(rng.random(values.shape) < 0.7, small, values).astype(np.uint32)

    def expected(self) -> NDArray[np.uint32]:
        """The variables of each thread at its end, by the model."""
        given = self.inputs().reshape(WARPS, 32, VARIABLES)
        warps = [Warp(i, [[int(x) for x in given[i, :, v]] for v in range(VARIABLES)]) for i in range(WARPS)]
        for others in self.others:
            others.update(enumerate(warps))
        for statement in self.statements:
            if statement.block:
                for warp in warps:
                    statement.run(warp, set())
            for warp in warps:
                if warp.alive:
                    statement.run(warp, set(warp.alive))
        return np.array([w.v for w in warps], np.uint32).transpose(0, 2, 1).reshape(-1, VARIABLES)


def generate(seed: int) -> WarpProgram:
    """The program of a seed."""
    maker = Maker(random.Random(seed))
    statements: list[Statement] = []
    for _ in range(maker.rng.randrange(3, 12)):
        statements.append(maker.meeting() if maker.rng.random() < 0.2 else maker.statement("m0", 3))
    keep = " ".join(f"out[t * {VARIABLES} + {i}] = v{i};" for i in range(VARIABLES))
    lines = [
        PRELUDE,
        "#undef KEEP",
        f"#define KEEP {keep}",
        f'extern "C" __global__ void w{seed}(const u32* in, u32* out) {{',
    ]
    lines += [f"  __shared__ u32 part[{32 * WARPS}]; u32 t = threadIdx.x; u32* mine = part + (t & ~31);"]
    lines += ["  mine[LANE] = 0; __syncthreads(); u32 m0 = 0xffffffff;"]
    lines += ["  u32 " + ", ".join(f"v{i} = in[t * {VARIABLES} + {i}]" for i in range(VARIABLES)) + ";"]
    lines += [*_lines(statements), "  KEEP;", "}"]
    return WarpProgram(f"w{seed}", "\n".join(lines) + "\n", statements, maker.others, seed)
