"""Native loads and stores of global memory beside NumPy's: values, counters and faults, for all widths, masks and orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sampling import grid
from weft.emulator import Checks, Fault, Scratch, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.native import code
from weft.emulator.native.quick_global import GlobalMemory
from weft.emulator.ptx import parse

THREADS = 224
"""Of two blocks, whose last warps are not whole."""

COPY = """
.version 8.8
.target sm_100
.address_size 64
.visible .entry copy(.param .u64 out, .param .u64 x, .param .u64 places, .param .u64 choice)
{{
  .reg .pred %p; .reg .b16 %h; .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .b{width} %v<8>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [places]; ld.param.u64 %rd3, [choice];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 112, %r0;
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd5, %rd2, %rd4; ld.global.u32 %r1, [%rd5];
  add.u64 %rd5, %rd3, %rd4; ld.global.u32 %r2, [%rd5]; setp.ne.u32 %p, %r2, 0;
  mul.wide.u32 %rd4, %r1, {size}; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd0, %rd4;
  @%p ld.global{vector}.{kind} {{{parts}}}, [%rd5+-{size}];
  @%p st.global{vector}.{kind} [%rd6+{size}], {{{parts}}};
  ret;
}}
"""


@pytest.fixture(autouse=True, scope="module")
def there() -> None:
    ops.load()
    if code.compiled() is None:
        pytest.skip("no LLVM here")


def both_ways(
    text: str, kernel: str, arrays: list[Any], blocks: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[Any, bytes], list[bool]]:
    """Counters or the fault, and the last bytes of the first array, natively and on NumPy; and which accesses were native."""
    made: list[bool] = []
    access = GlobalMemory.access

    def record(self: GlobalMemory, *given: Any) -> bool:
        made.append(access(self, *given))
        return made[-1]

    monkeypatch.setattr(GlobalMemory, "access", record)
    program = Program(parse(text))
    first: NDArray[Any] = getattr(arrays[0], "array", arrays[0])
    before = first.copy()
    found: list[tuple[Any, bytes]] = []

    def run() -> None:
        first[...] = before
        try:
            outcome: Any = launch(program, kernel, (blocks, 1, 1), (threads, 1, 1), arrays, 0, Checks()).counters.rows()
        except Fault as fault:
            outcome = type(fault), str(fault)
        found.append((outcome, first.tobytes()))

    run()
    with code.only_numpy():
        run()
    assert found[0] == found[1]
    return found[0], made


WIDTHS = [
    ("b8", 16),
    ("s8", 32),
    ("u8", 64),
    ("b16", 16),
    ("s16", 32),
    ("b16", 64),
    ("b32", 32),
    ("s32", 64),
    ("b64", 64),
]
ORDERS = ["ascending", "shuffled", "far"]


@pytest.mark.parametrize(("kind", "width"), WIDTHS)
@pytest.mark.parametrize(("count", "order"), grid(2, [1, 2, 4], ORDERS))
def test_widths(kind: str, width: int, count: int, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = int(kind[1:]) // 8 * count
    rng = np.random.default_rng(size)
    places = np.arange(1, THREADS + 1, dtype=np.uint32)
    if order != "ascending":
        rng.shuffle(places)
    if order == "far":
        places *= 5
    chosen = rng.integers(0, 3, THREADS).astype(np.uint32)
    chosen[32:64], chosen[64:96] = 0, 1
    x = rng.integers(0, 256, (5 * THREADS + 2, size)).astype(np.uint8)
    out = np.zeros_like(x)
    vector = f".v{count}" if count > 1 else ""
    parts = ", ".join(f"%v{i}" for i in range(count))
    text = COPY.format(width=width, size=size, vector=vector, kind=kind, parts=parts)
    if count == 1:
        text = text.replace("{%v0}", "%v0")
    (_, bytes_out), made = both_ways(text, "copy", [out, x, places, chosen], 2, THREADS // 2, monkeypatch)
    expected = np.zeros_like(x)
    going = places[chosen != 0].astype(np.intp)
    expected[going + 1] = x[going - 1]
    assert bytes_out == expected.tobytes()
    assert made == [True] * 4


TOUCH = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 out, .param .u64 x, .param .u64 places)
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [places];
  mov.u32 %r0, %tid.x; mul.wide.u32 %rd4, %r0, 8;
  add.u64 %rd5, %rd2, %rd4; ld.global.u64 %rd6, [%rd5];
  add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r1, [%rd7];
  add.u64 %rd5, %rd0, %rd6; st.global.u32 [%rd5], %r0;
  ret;
}
"""
LANES = 64
FAULTS = {
    "read beyond": (4 * LANES, "out of bounds: read of 4 bytes of global memory"),
    "read before": (-4, "out of bounds: read of 4 bytes of global memory"),
    "read far away": (1 << 40, "out of bounds: read of 4 bytes of global memory"),
    "read across the end": (4 * LANES - 2, "out of bounds: read of 4 bytes of global memory"),
    "misaligned": (6, "misaligned: read of 4 bytes at an address that is no multiple of 4"),
    "race": (4, "race: thread ({first}, 0, 0) of block (0, 0, 0) and thread ({second}, 0, 0) of block (0, 0, 0) write"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("lane", [0, 37], ids=["first", "other"])
def test_faults(name: str, lane: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lane's access is wrong: the fault's words are NumPy's, and nothing is written."""
    offset, words = FAULTS[name]
    places = 4 * np.arange(LANES, dtype=np.int64)
    places[lane] = offset
    out, x = np.zeros(LANES, np.uint32), np.ones(LANES, np.uint32)
    (found, bytes_out), made = both_ways(TOUCH, "touch", [out, x, places], 1, LANES, monkeypatch)
    first, second = sorted((1, lane))
    assert str(found[1]).startswith(words.format(first=first, second=second))
    assert bytes_out == bytes(4 * LANES)
    assert made == [True, name == "race"]  # the store raises


def test_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch has not written is found by NumPy; what it has is read natively."""
    text = TOUCH.replace("ld.global.u32 %r1, [%rd7];", "").replace(
        "  ret;", "  ld.global.u32 %r2, [%rd5+{off}]; add.u64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r2; ret;"
    )
    places = 4 * np.arange(LANES, dtype=np.int64)
    x = np.zeros(LANES, np.uint32)
    out = Scratch(np.zeros(2 * LANES, np.uint32))
    _, made = both_ways(text.replace("{off}", "0"), "touch", [out, x, places], 1, LANES, monkeypatch)
    assert made == [True] * 4
    swapped = text.replace("{off}", str(4 * LANES))
    (found, _), made = both_ways(swapped, "touch", [out, x, places], 1, LANES, monkeypatch)
    assert str(found[1]).startswith("uninitialised read: read of 4 bytes of global memory")
    assert made[:3] == [True, True, False]


def test_who_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches without checks of bounds, and those that translate addresses, are NumPy's."""
    places = 4 * np.arange(LANES, dtype=np.int64)
    out, x = np.zeros(LANES, np.uint32), np.ones(LANES, np.uint32)

    def no(self: GlobalMemory, *given: Any) -> bool:
        raise AssertionError("an access that is not to be made natively")

    monkeypatch.setattr(GlobalMemory, "access", no)
    program = Program(parse(TOUCH))
    shape = (1, 1, 1), (LANES, 1, 1)
    for checks in (Checks(bounds=False), Checks(alignment=False)):
        launch(program, "touch", *shape, [out, x, places], 0, checks)
    launch(program, "touch", *shape, [out.ctypes.data, x, places], 0, Checks(), [out])
    assert (out == np.arange(LANES)).all()


WIDER = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry wider(.param .u64 out, .param .u64 x)
{{
  .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .b{width} %v<2>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x];
  mov.u32 %r0, %tid.x; div.u32 %r1, %r0, 3; mul.wide.u32 %rd2, %r1, {size}; add.u64 %rd3, %rd1, %rd2;
  ld.global.{kind} %v0, [%rd3];
  mul.wide.u32 %rd4, %r0, {bytes}; add.u64 %rd5, %rd0, %rd4;
  st.global.b{width} [%rd5], %v0;
  ld.global.b{width} %v1, [%rd5];
  ret;
}}
"""


@pytest.mark.parametrize(("kind", "width"), [*WIDTHS, ("s8", 16), ("u8", 16), ("s16", 64), ("u32", 64), ("s8", 64)])
def test_wider_registers(kind: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads fill registers, with the sign or zeros; three threads read a place, and each reads what it wrote."""
    sort = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    x = np.random.default_rng(width).integers(0, 256, 32 * sort.itemsize).astype(np.uint8)
    out = Scratch(np.zeros(96, f"u{width // 8}"))
    text = WIDER.format(kind=kind, width=width, size=sort.itemsize, bytes=width // 8)
    (_, bytes_out), made = both_ways(text, "wider", [out, x], 1, 96, monkeypatch)
    assert bytes_out == np.repeat(x.view(sort), 3).astype(f"i{width // 8}").tobytes()
    assert made == [True] * 3
