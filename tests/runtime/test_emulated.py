"""Kernels on an emulated GPU: the same launches, the same results, the user's lines in faults and profiles."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import emulator
from weft.testing import assert_profile

pytestmark = pytest.mark.jit


@weft.jit
def add(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@weft.jit
def line_by_line(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    source = x + tl.arange(0, BLOCK)
    destination = out + tl.arange(0, BLOCK)
    value = tl.load(source)
    tl.store(destination, value)


@weft.jit
def helper(out: Any, i: Any, x: Any) -> None:
    tl.store(out + i, tl.load(x + i + 1))


@weft.jit
def reads_past(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    helper(out, i, x)


@weft.jit
def scaled(x: Any, factor: Any, on: Any, wide: Any) -> None:
    value = tl.load(x) * factor + wide
    if on:
        tl.store(x, value)


def arrays(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random(n).astype(np.float32), rng.random(n).astype(np.float32), np.zeros(n, np.float32)


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"])
def test_a_launch_inside_emulate_runs_on_the_gpu(target: str) -> None:
    x, y, out = arrays(1000)
    with weft.emulate(target) as gpu:
        add[(4,)](x, y, out, 1000, BLOCK=256)
    assert gpu.name == target
    np.testing.assert_array_equal(out, x + y)


def test_on_places_one_launch() -> None:
    x, y, out = arrays(1000)

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (weft.cdiv(1000, meta["BLOCK"]),)

    add.on("sm_90")[grid](x, y, out, 1000, BLOCK=256)
    np.testing.assert_array_equal(out, x + y)


def test_a_profile_counts_by_the_kernels_lines() -> None:
    """1,024 floats of 4 bytes make 128 sectors of 32 bytes an array; each of 4 warps stores vectors of 16 bytes twice."""
    x, y, out = arrays(1024)
    profile = add.profile("sm_90")[(1,)](x, y, out, 1024, BLOCK=1024)
    np.testing.assert_array_equal(out, x + y)
    assert_profile(profile, global_sectors=3 * 128, bank_conflicts=0, barriers=0)
    code = add.fn.__code__
    line = f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno + 4}"
    assert_profile(profile, at=line, global_sectors=3 * 128)


def test_an_access_has_its_own_line_and_not_that_of_its_pointer() -> None:
    """1,024 floats make 128 sectors, on the line of the load and on that of the store, and no others."""
    x, _, out = arrays(1024)
    profile = line_by_line.profile("sm_90")[(1,)](x, out, BLOCK=1024)
    first = line_by_line.fn.__code__.co_firstlineno
    for line in (4, 5):
        assert_profile(profile, at=f"test_emulated.py:{first + line}", global_sectors=128)
    assert profile.totals["global_sectors"] == 256


def test_a_fault_names_the_users_line_and_leaves_the_arrays() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    first = helper.fn.__code__.co_firstlineno
    with pytest.raises(emulator.OutOfBounds, match=rf"test_emulated\.py:{first + 2}"):
        reads_past.on("sm_90")[(1,)](x, out, BLOCK=64)
    assert not out.any()


@weft.jit
def neighbours(x: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i + BLOCK, mask=i + BLOCK < 384)
    tl.store(x + i, value, mask=i + BLOCK < 384)


def test_a_race_of_two_programs_names_the_users_lines() -> None:
    x, before = np.arange(384, dtype=np.float32), np.arange(384, dtype=np.float32)
    with pytest.raises(emulator.Race) as caught:
        neighbours.on("sm_90")[(3,)](x, BLOCK=128)
    first = neighbours.fn.__code__.co_firstlineno
    message = re.sub(r"PTX line \d+", "PTX line N", caught.value.message)
    assert message == (
        "thread (0, 0, 0) of block (1, 0, 0) writes bytes 512 to 515 of 'argument 0', which thread (0, 0, 0) of block "
        f"(0, 0, 0) read at PTX line N (source {__file__}:{first + 3}); nothing orders them: "
        "blocks are ordered by a release and an acquire at .gpu scope"
    )
    assert f"source {__file__}:{first + 4}" in str(caught.value)
    np.testing.assert_array_equal(x, before)


def test_checks_are_switched_off_for_launches_inside() -> None:
    x = np.arange(384, dtype=np.float32)
    with weft.emulate("sm_90", checks=emulator.Checks(global_races=False)):
        neighbours[(3,)](x, BLOCK=128)
        neighbours.on("sm_80")[(3,)](x, BLOCK=128)
    with weft.emulate("sm_90"), pytest.raises(emulator.Race):
        neighbours[(3,)](x, BLOCK=128)


def test_scalars_of_all_kinds() -> None:
    for on in (False, True):
        x = np.full(1, 3.0, np.float32)
        scaled.on("sm_90")[(1,)](x, 2.5, on, 2**40)
        assert x[0] == np.float32(3.0 * 2.5 + 2**40 if on else 3.0)


def test_views_and_aliases_are_one_memory() -> None:
    """Overlapping arrays are not disjoint: reads of one program come before its writes."""
    memory = np.arange(300, dtype=np.float32)
    expected = memory.copy()
    expected[3:259] = expected[1:257] + expected[44:300]
    add.on("sm_80")[(1,)](memory[1:257], memory[44:300], memory[3:259], 256, BLOCK=256)
    np.testing.assert_array_equal(memory, expected)


def test_a_read_only_array_is_refused() -> None:
    x, y, out = arrays(64)
    out.flags.writeable = False
    message = (
        "kernel 'add': parameter 'out': found a read-only array, but the kernel writes through it; pass a writable one"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        add.on("sm_90")[(1,)](x, y, out, 64, BLOCK=64)


def test_an_unknown_target_is_named_with_the_nearest() -> None:
    message = "unknown target 'sm90'; weft compiles for sm_80, sm_86, sm_89, sm_90, sm_90a; did you mean 'sm_90'?"
    with pytest.raises(ValueError, match=re.escape(message)):
        add.on("sm90")
    with pytest.raises(ValueError, match=re.escape(message)):
        add.profile("sm90")
    with pytest.raises(ValueError, match=re.escape(message)), weft.emulate("sm90"):
        pass


def test_an_empty_grid_runs_nothing_and_has_no_profile() -> None:
    x, y, out = arrays(64)
    add.on("sm_90")[(0,)](x, y, out, 64, BLOCK=64)
    assert not out.any()
    message = "kernel 'add': the grid has no programs, so there is nothing to profile"
    with pytest.raises(ValueError, match=re.escape(message)):
        add.profile("sm_90")[(0,)](x, y, out, 64, BLOCK=64)


def test_clusters_are_refused() -> None:
    x, y, out = arrays(64)
    message = "num_ctas is 2, but weft has no code for clusters of blocks; leave it out"
    with pytest.raises(ValueError, match=re.escape(message)):
        add.on("sm_90")[(1,)](x, y, out, 64, BLOCK=64, num_ctas=2)


def test_launch_options_reach_the_code() -> None:
    x, y, out = arrays(64)
    for warps in (1, 2, 8):
        code = add.compile(x, y, out, 64, BLOCK=64, num_warps=warps, target="sm_90")
        assert code.threads == 32 * warps
        assert f".reqntid {32 * warps}\n" in code.ptx
    assert ".maxnreg 40\n" in add.compile(x, y, out, 64, BLOCK=64, maxnreg=40, target="sm_90").ptx


def test_a_compiled_handle_shows_each_stage_and_can_be_launched_by_others() -> None:
    x, y, out = arrays(512)
    code = add.compile(x, y, out, 500, BLOCK=512, target="sm_80")
    assert "tile.load" in code.tile_ir
    assert "#tile.layout" in code.laid_out
    assert "define" in code.llvm
    assert ".target sm_80" in code.ptx
    arguments = [x, y, out, np.int32(500)]
    emulator.Module(code.ptx).launch(code.symbol, 1, code.threads, arguments, shared=code.shared)
    np.testing.assert_array_equal(out[:500], x[:500] + y[:500])
    assert repr(code) == "<compiled add for sm_80>"


@weft.jit
def spread(counter: Any, out: Any, KIND: tl.constexpr, N: tl.constexpr, M: tl.constexpr) -> None:
    i, j = tl.arange(0, N), tl.arange(0, M)
    if KIND == "add":
        seen = tl.atomic_add(counter + i, 1)
    elif KIND == "cas":
        seen = tl.atomic_cas(counter + i, i, -i)
    else:
        seen = tl.load(counter + i, volatile=True)
    tl.store(out + i[:, None] * M + j[None, :], seen[:, None] + j[None, :])


@pytest.mark.parametrize("kind", ["add", "cas", "volatile"])
@pytest.mark.parametrize("size", [1, 4, 16, 128])
def test_all_copies_of_what_one_thread_has_read_are_equal(kind: str, size: int) -> None:
    """A tile smaller than the block has copies in several threads, of which one accesses memory; all warps go on with the
    result."""
    counter = np.arange(size, dtype=np.int32)
    out = np.zeros((size, 64), np.int32)
    spread.on("sm_90")[(1,)](counter, out, KIND=kind, N=size, M=64)
    np.testing.assert_array_equal(out, np.arange(size)[:, None] + np.arange(64))
    after = {"add": np.arange(size) + 1, "cas": -np.arange(size), "volatile": np.arange(size)}[kind]
    np.testing.assert_array_equal(counter, after)


@weft.jit
def through_a_table(addresses: Any, out: Any, BLOCK: tl.constexpr) -> None:
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(addresses + pid).to(tl.pointer_type(tl.float32))
    tl.store(out + pid * BLOCK + i, tl.load(x + i) * 2)
    tl.store(x + i, 0.0)


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90"])
def test_addresses_in_a_table_are_pointers(target: str) -> None:
    """On the CPU they are what they are; in the emulator those of the arrays that `emulate` is given."""
    x, y, out = arrays(128)
    expected = np.concatenate([2 * y, 2 * x])
    addresses = np.array([y.ctypes.data, x.ctypes.data], np.int64)
    out = np.zeros(256, np.float32)
    with nullcontext() if target == "cpu" else weft.emulate(target, memory=[x, y]):
        through_a_table[(2,)](addresses, out, BLOCK=128)
    np.testing.assert_array_equal(out, expected)
    assert not x.any()
    assert not y.any()


@weft.jit
def into_a_table(addresses: Any, x: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(addresses + i, x + 3 * i)
    tl.store(addresses + BLOCK, tl.where(tl.load(x) > 0, x + 1, x))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("target", ["cpu", "sm_80"])
def test_pointers_are_stored_as_numbers(target: str, dtype: type[np.int64 | np.uint64]) -> None:
    x, addresses = np.arange(8, dtype=np.int16), np.zeros(5, dtype)
    with nullcontext() if target == "cpu" else weft.emulate(target):
        into_a_table[(1,)](addresses, x, BLOCK=4)
    np.testing.assert_array_equal(addresses - addresses[0], [0, 6, 12, 18, 0])
    if target == "cpu":
        assert addresses[0] == x.ctypes.data


@weft.jit
def into_narrow_numbers(addresses: Any) -> None:
    tl.store(addresses, addresses)


def test_pointers_are_not_stored_as_narrower_numbers() -> None:
    with pytest.raises(weft.CompilationError, match=re.escape("'value' is a tile of numbers, found pointer<int32>")):
        into_narrow_numbers[(1,)](np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "expected an array in the CPU's memory, found an object of type int"),
        (np.zeros(2, np.complex64), "found a NumPy array of complex64; weft has "),
    ],
    ids=["a number", "a type that weft has not"],
)
def test_memory_that_is_no_array_is_refused(value: Any, words: str) -> None:
    with (
        pytest.raises(TypeError, match=re.escape(f"weft.emulate: memory[1]: {words}")),
        weft.emulate("sm_90", memory=[np.zeros(1), value]),
    ):
        pass
