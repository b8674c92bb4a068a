"""Tensor copies of elements of 4 and 6 bits: against lists of elements, packed and unpacked by integers of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator import Fault, Module, TensorMap, Undefined
from weft.emulator.profile.profile import Profile

HEAD = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 out, .param .align 4 .b8 at[12])
{{
  .shared .align 1024 .b8 data[8192]; .shared .align 8 .b64 bar; .shared .align 128 .b8 edited[128];
  .reg .b64 %y<8>; .reg .b32 %x<16>; .reg .b32 %c<3>; .reg .pred %q<8>;
  mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; mov.u32 %x9, data; mov.u32 %x10, bar;
  mov.b64 %y0, map; cvta.param.u64 %y1, %y0; ld.param.u64 %y2, [out];
  ld.param.b32 %c0, [at]; ld.param.b32 %c1, [at+4]; ld.param.b32 %c2, [at+8];
  @!%q0 mbarrier.init.shared.b64 [bar], 1;
  bar.sync 0;
  shl.b32 %x1, %x0, 2;
"""

LOAD = """
  @%q0 bra LOADED;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {expected};
  cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%x9], [%y1, {{{at}}}], [%x10];
  LOADED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra LOADED;
  LOOP: setp.ge.u32 %q2, %x1, {bytes}; @%q2 bra DONE;
  add.u32 %x2, %x1, %x9; ld.shared.u32 %x3, [%x2];
  cvt.u64.u32 %y3, %x1; add.u64 %y4, %y2, %y3; st.global.u32 [%y4], %x3;
  add.u32 %x1, %x1, 512; bra LOOP;
  DONE: ret;
}}
"""

STORE = """
  LOOP: setp.ge.u32 %q2, %x1, {bytes}; @%q2 bra FILLED;
  cvt.u64.u32 %y3, %x1; add.u64 %y4, %y2, %y3; ld.global.u32 %x3, [%y4];
  add.u32 %x2, %x1, %x9; st.shared.u32 [%x2], %x3;
  add.u32 %x1, %x1, 512; bra LOOP;
  FILLED: fence.proxy.async.shared::cta; bar.sync 0;
  @%q0 bra STORED;
  {instruction}.{rank}d.global.shared::cta{operation}.tile.bulk_group [%y1, {{{at}}}], [%x9];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  STORED: ret;
}}
"""

BITS = {"b4x16": 4, "b4x16_p64": 4, "b6x16_p32": 6}


def packed(elements: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Rows of elements as rows of bytes: each row is one integer, the first element in its lowest bits."""
    rows = [
        sum(int(e) << bits * i for i, e in enumerate(row)).to_bytes(len(row) * bits // 8, "little")
        for row in elements.reshape(-1, elements.shape[-1])
    ]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(*elements.shape[:-1], -1).copy()


def in_shared(box: NDArray[Any], name: str, padding: int = 0xFF) -> NDArray[np.uint8]:
    """A box of elements as shared memory has it, unswizzled: 16 elements, then padding up to 16 bytes where there is any."""
    groups = packed(box.reshape(-1, 16), BITS[name])
    if name == "b4x16":
        return groups.reshape(-1)
    full = np.full((len(groups), 16), padding, np.uint8)
    full[:, : groups.shape[1]] = groups
    return full.reshape(-1)


def swizzled(lines: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 128B mode (PTX ISA 5.5.7): the 16-byte cell c of line i is at c ^ i % 8. Data begins where the pattern does."""
    cells = lines.reshape(-1, 8, 16)
    found = np.empty_like(cells)
    for i in range(len(cells)):
        for c in range(8):
            found[i, c ^ i % 8] = cells[i, c]
    return found.reshape(-1)


def launch(text: str, tensor_map: TensorMap, data: NDArray[np.uint8], at: tuple[int, ...]) -> Profile:
    given = np.array([*at[::-1], *[0] * (3 - len(at))], np.int32)
    return Module(HEAD.format() + text).launch("test", 1, 128, [tensor_map, data, given.tobytes()])


def load(tensor_map: TensorMap, at: tuple[int, ...], size: int, expected: int) -> tuple[NDArray[np.uint8], Profile]:
    """``size`` bytes of shared memory after a load that completes ``expected``."""
    rank, found = len(at), np.zeros(size, np.uint8)
    names = ", ".join(f"%c{k}" for k in range(rank))
    profile = launch(LOAD.format(rank=rank, at=names, bytes=size, expected=expected), tensor_map, found, at)
    return found, profile


def store(tensor_map: TensorMap, at: tuple[int, ...], given: NDArray[np.uint8], operation: str = "") -> Profile:
    instruction = "cp.reduce.async.bulk.tensor" if operation else "cp.async.bulk.tensor"
    names = ", ".join(f"%c{k}" for k in range(len(at)))
    text = STORE.format(rank=len(at), at=names, bytes=given.size, instruction=instruction, operation=operation)
    return launch(text, tensor_map, given, at)


def elements(*shape: int, bits: int, seed: int = 5) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 1 << bits, shape).astype(np.uint8)


def boxed(tensor: NDArray[Any], at: tuple[int, ...], box: tuple[int, ...]) -> NDArray[Any]:
    """The box, 0 where the tensor has no element."""
    found = np.zeros(box, np.uint8)
    for place in np.ndindex(*box):
        index = tuple(a + p for a, p in zip(at, place, strict=True))
        if all(0 <= i < n for i, n in zip(index, tensor.shape, strict=True)):
            found[place] = tensor[index]
    return found


LOADS: list[tuple[str, tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]] = [
    ("b4x16", (6, 96), (4, 64), [(0, 0), (1, 16), (-2, 2), (4, 90), (0, -30), (6, 0)]),
    ("b4x16", (2, 3, 64), (2, 2, 32), [(0, 1, 8), (1, 2, 62)]),
    ("b4x16_p64", (6, 256), (4, 128), [(0, 0), (1, 128), (-2, 0), (4, 128), (0, 256), (0, -128)]),
    ("b6x16_p32", (6, 256), (4, 128), [(0, 0), (1, 128), (-2, 0), (4, 128), (0, 256), (0, -128)]),
    ("b6x16_p32", (3, 2, 128), (2, 2, 128), [(0, 0, 0), (2, 1, 0)]),
]


@pytest.mark.parametrize(("name", "shape", "box", "starts"), LOADS)
def test_loads(name: str, shape: tuple[int, ...], box: tuple[int, ...], starts: list[tuple[int, ...]]) -> None:
    tensor = elements(*shape, bits=BITS[name])
    array = packed(tensor, BITS[name])
    data = int(np.prod(box)) * BITS[name] // 8
    for at in starts:
        expected = in_shared(boxed(tensor, at, box), name)
        found, profile = load(TensorMap(array, box=box, element=name), at, expected.size, data)
        np.testing.assert_array_equal(found, expected, err_msg=str(at))
        assert profile.total("async_shared_store_bytes") == expected.size


@pytest.mark.parametrize("name", list(BITS))
def test_swizzled_loads(name: str) -> None:
    columns = 256 if name == "b4x16" else 128
    tensor = elements(40, 256, bits=BITS[name])
    found, _ = load(
        TensorMap(packed(tensor, BITS[name]), box=(24, columns), element=name, swizzle="128B"),
        (20, 0),
        24 * 128,
        24 * columns * BITS[name] // 8,
    )
    np.testing.assert_array_equal(found, swizzled(in_shared(boxed(tensor, (20, 0), (24, columns)), name)))


def test_strides_and_offsets() -> None:
    memory = np.random.default_rng(1).integers(0, 256, 4096).astype(np.uint8)
    described = TensorMap(memory, shape=(7, 128), strides=(160, 1), offset=64, element="b6x16_p32", box=(3, 128))
    rows = np.stack([memory[64 + 160 * i :][:96] for i in (2, 3, 4)])
    tensor = np.array([[int.from_bytes(row.tobytes(), "little") >> 6 * i & 63 for i in range(128)] for row in rows])
    found, _ = load(described, (2, 0), 3 * 128, 3 * 96)
    np.testing.assert_array_equal(found, in_shared(tensor, "b6x16_p32"))


def test_stores_of_four_bits() -> None:
    tensor, given = elements(6, 96, bits=4), elements(4, 64, bits=4, seed=6)
    array = packed(tensor, 4)
    store(TensorMap(array, box=(4, 64), element="b4x16"), (3, 40), packed(given, 4).reshape(-1))
    tensor[3:, 40:] = given[:3, :56]
    np.testing.assert_array_equal(array, packed(tensor, 4))


@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_stores_of_six_bits_drop_two_of_each_byte(swizzle: str) -> None:
    tensor = elements(6, 256, bits=6)
    given = np.random.default_rng(8).integers(0, 256, (4, 128)).astype(np.uint8)
    array = packed(tensor, 6)
    laid = given.reshape(-1) if swizzle == "none" else swizzled(given.reshape(-1))
    store(TensorMap(array, box=(4, 128), element="b6x16_p32", swizzle=swizzle), (3, 128), laid)
    tensor[3:, 128:] = given[:3] % 64
    np.testing.assert_array_equal(array, packed(tensor, 6))


def test_a_map_that_the_program_edits() -> None:
    """A map of bytes becomes one of 4-bit elements."""
    tensor = elements(6, 96, bits=4)
    array = packed(tensor, 4)
    edits = """
      @%q0 bra EDITED;
      tensormap.replace.tile.elemtype.global.b1024.b32 [%y5], 0xd;
      tensormap.replace.tile.global_dim.global.b1024.b32 [%y5], 0, 96;
      tensormap.replace.tile.box_dim.global.b1024.b32 [%y5], 0, 64;
      EDITED: bar.sync 0; mov.b64 %y1, %y5;
    """
    text = "add.u64 %y5, %y2, 128;" + edits + LOAD.format(rank=2, at="%c0, %c1", bytes=128, expected=128)
    scratch = np.zeros(256, np.uint8)
    copied = "".join(
        f"ld.param.b64 %y6, [map+{i}]; add.u64 %y7, %y2, {128 + i}; @!%q0 st.global.b64 [%y7], %y6;"
        for i in range(0, 128, 8)
    )
    launch(copied + text, TensorMap(array, box=(4, 32)), scratch, (1, 16))
    np.testing.assert_array_equal(scratch[:128], packed(tensor[1:5, 16:80], 4).reshape(-1))


def fault_of(action: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        action()
    assert type(caught.value) is Undefined
    return caught.value


def test_faults() -> None:
    array = np.zeros((8, 192), np.uint8)
    padded = TensorMap(array, box=(2, 128), element="b4x16_p64")
    error = fault_of(lambda: load(padded, (0, 64), 256, 128))
    assert error.message == "a first coordinate of 64 for elements of type b4x16_p64; it must be a multiple of 128"
    pairs = TensorMap(array, box=(2, 128), element="b4x16")
    error = fault_of(lambda: load(pairs, (0, 3), 128, 128))
    assert error.message == "a first coordinate of 3 for elements of type b4x16; it must be a multiple of 2"
    error = fault_of(lambda: store(padded, (0, 0), np.zeros(256, np.uint8)))
    assert (
        error.message == "a tensor copy to global memory of elements of type b4x16_p64; they go to shared memory only"
    )
    six = TensorMap(array, box=(2, 128), element="b6x16_p32")
    error = fault_of(lambda: store(six, (0, 0), np.zeros(256, np.uint8), ".or"))
    assert error.message == ".or of a tensor has elements of types b32, b64, not b6x16_p32"
