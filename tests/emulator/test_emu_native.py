"""The native interpreter beside NumPy: every form it has, on edge values and random ones, with all lanes, some and guards; and
kernels whose lanes part. (`conftest.py` compares the two on every other launch of these tests.)"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import kernel
from weft.emulator import Checks, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.machine.scheduler import Scheduler
from weft.emulator.native import code, running
from weft.emulator.native.arrays import address_of
from weft.emulator.native.forms import FORMS, WIDER
from weft.emulator.native.handlers import NUMBERS
from weft.emulator.native.rows import Rows
from weft.emulator.native.scalar import (
    SUPPORT,
    ballot,
    i32,
    i64,
    ones,
    put8,
    put16,
    put32,
    put64,
    room,
    translated,
    u8,
    u16,
    u32,
)
from weft.emulator.ptx import parse
from weft.emulator.ptx.types import TYPES
from weft.runtime import helpers

THREADS = 256
CHUNK = 24
NAMES = sorted(FORMS)
CHUNKS = [NAMES[i : i + CHUNK] for i in range(0, len(NAMES), CHUNK)]


def values(kind: str, seed: int) -> NDArray[Any]:
    """Edge values of a type in each half with the others', then random bits."""
    rng = np.random.default_rng(seed)
    bits = 8 if kind == "pred" else TYPES[kind].bits
    if kind == "pred":
        return rng.integers(0, 2, THREADS).astype(np.uint8)
    top = 1 << bits
    edges = [0, 1, 2, 7, 31, 32, 33, 63, 64, 65, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1, 255, 128]
    if kind in ("f16", "f32", "f64"):
        numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e4, np.inf, -np.inf, np.nan, -np.nan, 1e-5, 65504.0]
        info = np.finfo(TYPES[kind].numpy)
        numbers += [info.smallest_normal, -info.smallest_subnormal, info.max, info.smallest_normal / 2, 2147483648.0]
        with np.errstate(over="ignore"):
            edges += np.array(numbers, TYPES[kind].numpy).view(f"u{bits // 8}").tolist()
    found = np.array(edges, np.uint64).astype(f"u{bits // 8}")
    every = rng.choice(found, THREADS)
    some = rng.random(THREADS) < 0.5
    noise = rng.integers(0, top, THREADS, np.uint64).astype(every.dtype)
    if kind in ("f32", "f64"):
        noise = (rng.standard_normal(THREADS) * 100).astype(TYPES[kind].numpy).view(every.dtype)
    return np.where(some, noise, every)


def source(form: str, kinds: tuple[str, ...], immediate: bool, number: int) -> tuple[str, dict[str, str]]:
    """The text of a form whose result is ``%dN``, and its operands' types by name."""
    inputs = {f"{'xyz'[i]}_{kind}": kind for i, kind in enumerate(kinds[1:])}
    last = f", {37 + 5 * number % 200}" if immediate else ""
    return f"{form} %d{number}, {', '.join('%' + name for name in inputs)}{last};", inputs


def run(text: str, inputs: dict[str, str], outputs: dict[str, str], guard: bool) -> list[NDArray[Any]]:
    """Results by both, native ones first."""
    ops.load()
    program = Program(parse(kernel(text, inputs, outputs, guard=guard)))
    given = [values(kind, seed) for seed, kind in enumerate(inputs.values())]
    active = np.random.default_rng(5).integers(0, 2, THREADS).astype(np.uint8)
    results: list[NDArray[Any]] = []
    for native in (True, False):
        out = [np.zeros(THREADS, "u1" if k == "pred" else f"u{TYPES[k].bytes}") for k in outputs.values()]
        arguments = [*([active] if guard else []), *given, *out]
        if native:
            launch(program, "test", (2, 1, 1), (128, 1, 1), arguments, 0, Checks())
        else:
            with code.only_numpy():
                launch(program, "test", (2, 1, 1), (128, 1, 1), arguments, 0, Checks())
        results += out
    return results


def alike(found: NDArray[Any], expected: NDArray[Any], kind: str) -> bool:
    """Whether bits are the same; of f64's NaNs the ISA leaves them open."""
    if kind == "f64":
        both = np.isnan(found.view("f8")) & np.isnan(expected.view("f8"))
        return bool(((found == expected) | both).all())
    return bool((found == expected).all())


@pytest.mark.jit
def test_there_is_an_interpreter() -> None:
    assert code.compiled() is not None


@pytest.mark.jit
@pytest.mark.parametrize("guard", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("names", CHUNKS, ids=lambda names: names[0])
def test_every_form(names: list[str], guard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []
    bind = Scheduler._bind  # pyright: ignore[reportPrivateUsage]

    def record(self: Scheduler, site: int) -> None:
        if self.rows is not None:
            bound.append(self.program.instructions[site].name)
        bind(self, site)

    monkeypatch.setattr(Scheduler, "_bind", record)
    lines: list[str] = []
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for number, name in enumerate(names):
        form = FORMS[name]
        text, used = source(name, form.operands, form.immediate, number)
        lines.append(f"@%g_pred {text}" if number % 3 == 2 else text)
        inputs |= used
        outputs[f"d{number}"] = form.operands[0]
    inputs["g_pred"] = "pred"
    results = run("\n".join(lines), inputs, outputs, guard)
    for i, (name, kind) in enumerate(zip(names, outputs.values(), strict=True)):
        assert alike(results[i], results[i + len(names)], kind), name
    assert not set(bound) & set(names), "a form that no row was made of"


def test_every_handler_is_compared() -> None:
    """By the tests above and below, each day: `conftest.py` takes samples of the other launches."""
    moved = {NUMBERS[name] for name in NUMBERS if name.partition(".")[0] in ("pack", "low", "high")}
    assert {form.handler for form in FORMS.values()} | set(WIDER.values()) | moved == set(NUMBERS.values())


def test_conversions_from_wider_registers() -> None:
    for (name, register), _ in WIDER.items():
        to = name.split(".")[1]
        found, expected = run(f"{name} %d, %x;", {"x": f"b{register}"}, {"d": to}, False)
        assert (found == expected).all(), (name, register)


def test_text_joined_and_taken_apart() -> None:
    text = (
        "mov.b64 %d0, {%x, %y}; mov.b64 {%d1, %d2}, %z; mov.b64 {_, %d3}, %z; mov.b32 {%d4, %d5}, %x;"
        "mov.b32 %d6, {%d4, %d5};"
    )
    outputs = {"d0": "b64", "d1": "b32", "d2": "b32", "d3": "b32", "d4": "b16", "d5": "b16", "d6": "b32"}
    results = run(text, {"x": "b32", "y": "b32", "z": "b64"}, outputs, True)
    for found, expected in zip(results[:7], results[7:], strict=True):
        assert (found == expected).all()


def test_a_row_is_twelve_words() -> None:
    """The interpreter's text and `Rows.add` have the same order."""
    assert [word.name for word in running.Row] == [
        "HANDLER", "RESULT", "A", "A_STEP", "B", "B_STEP", "C", "C_STEP", "GUARD", "NEGATED", "THREADS", "IMMEDIATE",
    ]  # fmt: skip


PARTING = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 96, %r1;
  mov.u32 %r4, %r3; mov.u32 %r5, 0;
NEXT:
  setp.eq.u32 %p1, %r4, 1;
  @%p1 bra DONE;
  and.b32 %r6, %r4, 1;
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra EVEN;
  mad.lo.u32 %r4, %r4, 3, 1;
  bra.uni JOIN;
EVEN:
  shr.u32 %r4, %r4, 1;
JOIN:
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 100;
  @%p3 bra NEXT;
DONE:
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}
"""


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """A text with other passages in place of some that it has."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


NEGATED = replaced(
    PARTING,
    ("setp.eq.u32 %p2, %r6, 0;\n  @%p2 bra", "setp.ne.u32 %p2, %r6, 0;\n  @!%p2 bra"),
    ("setp.lt.u32 %p3, %r5, 100;\n  @%p3 bra NEXT;", "setp.ge.u32 %p3, %r5, 100;\n  @!%p3 bra NEXT;\n  bra.uni DONE;"),
    ("shr.u32 %r4, %r4, 1;", "shr.u32 %r4, %r4, 1;\n  bra.uni JOIN;\nNEVER:\n  trap;"),
)
"""The same by branches where the guard is false, and places that only branches without a guard lead to."""


def collatz(n: int) -> int:
    """Steps from n to 1, at most 100."""
    steps = 0
    while n != 1 and steps < 100:
        n, steps = (n // 2 if n % 2 == 0 else (3 * n + 1) % 2**32), steps + 1
    return steps


@pytest.mark.parametrize("text", [PARTING, NEGATED], ids=["guards", "negated"])
@pytest.mark.parametrize("blocks", [1, 5, 40])
def test_lanes_that_part(blocks: int, text: str) -> None:
    """Results, and the executions of each instruction, against NumPy's: a warp's lanes meet where they did. Of 5 blocks some
    warps, of 40 more than `running.CHUNK` are at a place."""
    ops.load()
    program = Program(parse(text))
    rows: list[Any] = []
    for native in (True, False):
        out = np.zeros(blocks * 96, np.uint32)
        if native:
            outcome = launch(program, "test", (blocks, 1, 1), (96, 1, 1), [out], 0, Checks())
        else:
            with code.only_numpy():
                outcome = launch(program, "test", (blocks, 1, 1), (96, 1, 1), [out], 0, Checks())
        assert out.tolist() == [collatz(n) for n in range(blocks * 96)]
        rows.append(outcome.counters.rows())
    assert rows[0] == rows[1]


GUARDS = """
  add.u32 %d, %x, 1;
  @%p add.u32 %d, %d, %x;
  @!%p xor.b32 %d, %d, 21;
  @%q mul.lo.u32 %d, %d, 3;
  sub.u32 %d, %d, 7;
"""


def test_guards_of_many_warps() -> None:
    """Rows in one step for more warps than `running.CHUNK`: of whole warps, none and some lanes pass."""
    ops.load()
    warps = 3 * running.CHUNK + 5
    n = 32 * warps
    program = Program(parse(kernel(GUARDS, {"x": "u32", "p": "pred", "q": "pred"}, {"d": "u32"})))
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1 << 32, n, np.uint64).astype(np.uint32)
    p, q = (rng.integers(0, 2, n).astype(np.uint8) for _ in range(2))
    p.reshape(-1, 32)[::3], q.reshape(-1, 32)[1::4] = 1, 0
    with np.errstate(over="ignore"):
        d = x + np.uint32(1)
        d = np.where(p, d + x, d ^ np.uint32(21))
        d = np.where(q, d * np.uint32(3), d) - np.uint32(7)
    rows: list[Any] = []
    for native in (True, False):
        out = np.zeros(n, np.uint32)
        if native:
            outcome = launch(program, "test", (warps, 1, 1), (32, 1, 1), [x, p, q, out], 0, Checks())
        else:
            with code.only_numpy():
                outcome = launch(program, "test", (warps, 1, 1), (32, 1, 1), [x, p, q, out], 0, Checks())
        assert (out == d).all()
        rows.append(outcome.counters.rows())
    assert rows[0] == rows[1]


@pytest.mark.jit
def test_compiled_while_a_launch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that begins on NumPy goes on natively once its patience ends; counts are those of one that did not."""
    ops.load()
    program = Program(parse(PARTING))
    out = np.zeros(96, np.uint32)
    with code.only_numpy():
        expected = launch(program, "test", (1, 1, 1), (96, 1, 1), [out], 0, Checks()).counters.rows()
    asked = iter([False] * 40)
    adopted: list[Scheduler] = []
    adopt = Scheduler._adopt  # pyright: ignore[reportPrivateUsage]
    begun: list[bool] = []
    available = code.available

    def at_first_none() -> code.Native | None:
        begun.append(True)
        return available() if len(begun) > 1 else None

    monkeypatch.setattr(code, "available", at_first_none)

    def ended(self: code.Patience) -> bool:
        return next(asked, True)

    def record(self: Scheduler) -> None:
        adopted.append(self)
        adopt(self)

    monkeypatch.setattr(code.Patience, "ended", ended)
    monkeypatch.setattr(Scheduler, "_adopt", record)
    again = np.zeros(96, np.uint32)
    found = launch(program, "test", (1, 1, 1), (96, 1, 1), [again], 0, Checks()).counters.rows()
    assert len(adopted) == 1 and isinstance(adopted[0].rows, Rows)
    assert (again == out).all() and found == expected


def test_where_nothing_implements_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weft's runtime the emulator has NumPy alone."""

    def missing(point: str) -> Any:
        raise LookupError(point)

    monkeypatch.setattr(code, "extension", missing)
    assert code._native(True) is None  # pyright: ignore[reportPrivateUsage]


# ---- the language of `weft.emulator.native.scalar` --------------------------------------------------------------------


def mixture(values: int, count: int) -> int:
    """All there is in the language."""
    total = 0
    i = 0
    while i < count:
        value = i64(values, i)
        i += 1
        if value == 13:
            break
        if value < 0 and not (value & 1) or value == 5:
            continue
        total += helper(value, i) if value > 2 or value == 1 else -value
    for j in range(2, 5):
        if 3 < j < 5:
            return total
        total = (total << 1) ^ (j | 8) - (~j >> 1)
    return -1


def helper(value: int, place: int) -> int:
    return value * 3 + (place != 4)


def narrow(values: int, count: int) -> int:
    """Elements of all widths; of 32 bits with and without sign."""
    put16(values, 0, u8(values, 8) + 300)
    put8(values, 7, 255)
    put32(values, 4, u32(values, 1) + i32(values, 1))
    put64(values, 3, u16(values, 0))
    return count


def of_lanes(values: int, count: int) -> int:
    """Masks of two warps, and words of its own."""
    own = room(3)
    other = room(2)
    put64(other, 0, 1 << 40)
    for i in range(3):
        put64(own, i, ballot(values, i & 1))
    return ones(i64(own, 0)) + (ones(i64(own, 2) ^ i64(own, 1)) << 8) + i64(other, 0)


def native(functions: list[Any], name: str, values: NDArray[np.int64]) -> int:
    text = (
        SUPPORT
        + translated(functions, {})
        + (f"define i64 @probe(i64 %a, i64 %b) {{\n  %r = call i64 @{name}(i64 %a, i64 %b)\n  ret i64 %r\n}}\n")
    )
    address = helpers.native("probe", text, lambda: text)
    assert address is not None
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    return call(address_of(values), values.size)


@pytest.mark.jit
@pytest.mark.parametrize(
    "values", [[1, 2, 3, 5, -4, -3, 7], [13], [], [4, 13, 4], [-2, -2, 1, 1, 1]], ids=lambda v: str(v)
)
def test_the_language_of_checks(values: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions are Python: they run there, too, where reads and writes are what they say."""
    given = np.array(values, np.int64)

    def element(array: NDArray[np.int64], index: int) -> int:
        return int(array[index])

    monkeypatch.setitem(globals(), "i64", element)
    assert native([mixture, helper], "mixture", given) == mixture(given, len(values))  # pyright: ignore[reportArgumentType]


@pytest.mark.jit
def test_elements_of_all_widths() -> None:
    values = np.array([0, 0, -1, 7], np.int64)
    values.view(np.int32)[1] = -5
    values.view(np.uint8)[8] = 9
    assert native([narrow], "narrow", values) == 4
    expected = np.array([0, 0, 0, 309], np.int64)
    expected.view(np.uint16)[0], expected.view(np.uint8)[7] = 309, 255
    expected.view(np.uint8)[4:7] = 251, 255, 255
    expected.view(np.uint8)[8] = 9
    expected.view(np.uint32)[4] = ((255 << 24 | 0xFFFFFB) + (255 << 24 | 0xFFFFFB)) % 2**32
    expected.view(np.int32)[5] = -1
    assert values.tolist() == expected.tolist()


@pytest.mark.jit
def test_lanes_in_the_language() -> None:
    lanes = np.random.default_rng(8).integers(0, 3, 64).astype(np.uint8)
    one, two = lanes.astype(np.bool_).reshape(2, 32)
    expected = int(one.sum()) + (int((one ^ two).sum()) << 8) + (1 << 40)
    assert native([of_lanes], "of_lanes", lanes.view(np.int64)) == expected


def divides(a: int, b: int) -> int:
    return a // b


def test_what_the_language_has_not() -> None:
    with pytest.raises(TypeError) as raised:
        translated([divides], {})
    assert str(raised.value) == "divides: a // b has no translation"
    with pytest.raises(TypeError) as raised:
        narrow(0, 0)
    assert str(raised.value) == "u8 is for functions that are translated"


def test_half_precision_by_integers() -> None:
    """All f16 numbers, and f32 numbers around each place where rounding to f16 changes, against NumPy's own conversions."""
    every = np.arange(1 << 16, dtype=np.uint16)
    found, _ = run_over("cvt.f32.f16 %d, %x;", {"x": ("f16", every)}, "f32")
    expected = every.view(np.float16).astype(np.float32).view(np.uint32)
    expected[np.isnan(every.view(np.float16))] = 0x7FFFFFFF
    assert (found == expected).all()
    exact = every[:0x7C00].view(np.float16).astype(np.float64)
    middle = np.concatenate([(exact[1:] + exact[:-1]) / 2, exact, [65520.0, 65536.0, 1e6, np.inf]]).astype(np.float32)
    near = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))])
    values = np.concatenate([near, -near, np.zeros(-2 * near.size % 256, np.float32)])
    found, _ = run_over("cvt.rn.f16.f32 %d, %x;", {"x": ("f32", values)}, "f16")
    with np.errstate(over="ignore"):
        assert (found == values.astype(np.float16).view(np.uint16)).all()


def run_over(text: str, inputs: dict[str, tuple[str, NDArray[Any]]], kind: str) -> tuple[NDArray[Any], ...]:
    """What a form gives of whole arrays, natively."""
    ops.load()
    program = Program(parse(kernel(text, {name: k for name, (k, _) in inputs.items()}, {"d": kind})))
    arrays = [values for _, values in inputs.values()]
    out = np.zeros(arrays[0].size, f"u{TYPES[kind].bytes}")
    launch(program, "test", (out.size // 256, 1, 1), (256, 1, 1), [*arrays, out], 0, Checks())
    return out, *arrays


def test_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for it and compiling it wait for launches that take long, each once."""
    asked: list[bool] = []

    def native(compile: bool) -> None:
        asked.append(compile)

    state = code._State()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(code, "_STATE", state)
    monkeypatch.setattr(code, "_native", native)
    at_hand = False

    def is_at_hand(point: str) -> bool:
        return at_hand

    monkeypatch.setattr(code, "is_at_hand", is_at_hand)
    for spent, expected in (
        (0.0, []),
        (0.05, []),
        (0.2, [False]),
        (0.3, [False]),
        (0.6, [False, True]),
        (9.0, [False, True]),
    ):
        state.spent = spent
        assert code.available() is None and asked == expected
    at_hand = True
    state.asked, state.spent = False, 0.0
    assert code.available() is None and asked == [False, True, False]
