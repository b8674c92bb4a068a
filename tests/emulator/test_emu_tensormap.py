"""Tensor maps that a program makes itself, as Triton's descriptors are: zeros, every field replaced, copied, used."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_programs import program
from weft.emulator import Fault, Module, PTXError, TensorMap, Undefined
from weft.emulator.tensor_map import SWIZZLES

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 array, .param .u64 out, .param .u64 scratch)
{
  .shared .align 128 .b8 map[128]; .shared .align 1024 .b8 data[2048]; .shared .align 8 .b64 bar;
  .reg .b64 %y<8>; .reg .b32 %x<16>; .reg .pred %q<8>;
  mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; mov.u32 %x9, data; mov.u32 %x10, bar;
  ld.param.u64 %y0, [array]; ld.param.u64 %y1, [out]; ld.param.u64 %y2, [scratch];
  @!%q0 mbarrier.init.shared.b64 [bar], 1;
  mov.u32 %x1, map; shl.b32 %x2, %x0, 2; add.u32 %x1, %x1, %x2; mov.u32 %x3, 0; st.shared.u32 [%x1], %x3;
  bar.warp.sync -1;
"""

REPLACE = """
  @%q0 bra MADE;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %y0;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], 0x1;
  mov.u32 %x4, 64;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0x0, %x4;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0x1, 0x8;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0x0, 100;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0x1, 20;
  mov.b64 %y3, 208;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], 0x0, %y3;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 0x0, 0x1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 0x1, 0x1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], 0x6;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [map], 0x0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [map], 0x0;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [map], 0x0;
  MADE: bar.warp.sync -1;
"""

COPY = """
  mov.u32 %x5, map;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%y2], [%x5], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%y2], 128;
"""

LOAD = """
  @%q0 bra LOADED;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%x9], [%y2, {60, 15}], [%x10];
  LOADED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra LOADED;
  READ: setp.ge.u32 %q2, %x2, 1024; @%q2 bra DONE;
  add.u32 %x6, %x2, %x9; ld.shared.u32 %x7, [%x6];
  cvt.u64.u32 %y4, %x2; add.u64 %y5, %y1, %y4; st.global.u32 [%y5], %x7;
  add.u32 %x2, %x2, 128; bra READ;
  DONE:
"""


def launched(text: str, array: NDArray[np.float16]) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
    """The box that was loaded, and the map that was made."""
    found, scratch = np.zeros((8, 64), np.float16), np.zeros(256, np.uint8)
    Module(HEAD + text + "ret;\n}").launch("test", 1, 32, [array, found, scratch])
    return found, scratch[:128]


def array_and_box() -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """A tensor of 20 rows of 100, 104 apart, and its box at column 60, row 15."""
    array = np.random.default_rng(1).normal(size=(20, 104)).astype(np.float16)
    box = np.zeros((8, 64), np.float16)
    box[:5, :40] = array[15:, 60:100]
    return array, box


def test_a_map_made_by_the_program() -> None:
    array, box = array_and_box()
    found, made = launched(REPLACE + COPY + LOAD, array)
    np.testing.assert_array_equal(found, box)
    # The same bytes as a map given to the launch has, but for where the array is placed.
    expected = TensorMap(array[:, :100], box=(8, 64)).encode(0)
    assert made[16:].tobytes() == expected[16:]
    assert made[:8].tobytes() == b"weftTMAP"


@pytest.mark.parametrize("name", [name for name in SWIZZLES if name.startswith("128B")])
def test_a_map_with_atoms(name: str) -> None:
    """The kinds of atoms are numbered as the ISA's table of .swizzle_atomicity has them."""
    array, _ = array_and_box()
    atoms = {"128B": 0, "128B_ATOM_32B": 1, "128B_ATOM_32B_FLIP_8B": 2, "128B_ATOM_64B": 3}[name]
    other = REPLACE.replace(
        "swizzle_mode.shared::cta.b1024.b32 [map], 0x0", "swizzle_mode.shared::cta.b1024.b32 [map], 0x3"
    )
    other = other.replace(
        "MADE:", f"tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [map], {atoms}; MADE:"
    )
    _, made = launched(other + COPY, array)
    assert made[16:].tobytes() == TensorMap(array[:, :100], box=(8, 64), swizzle=name).encode(0)[16:]


@pytest.mark.parametrize("space", [".global", ""])
def test_a_map_changed_in_global_memory(space: str) -> None:
    """The box is moved by half an array: eight rows up."""
    array, _ = array_and_box()
    moved = (
        REPLACE
        + COPY.partition("  fence")[0]
        + f"""
    add.u64 %y0, %y0, -1664;
    @!%q0 tensormap.replace.tile.global_address{space}.b1024.b64 [%y2], %y0;
    @!%q0 tensormap.replace.tile.global_dim{space}.b1024.b32 [%y2], 1, 28;
    fence.proxy.tensormap::generic.release.gpu;
    """
    )
    box = np.zeros((8, 64), np.float16)
    box[:, :40] = array[7:15, 60:100]
    found, _ = launched(moved + LOAD, array)
    np.testing.assert_array_equal(found, box)


def test_a_map_whose_fields_are_wrong() -> None:
    array, _ = array_and_box()
    with pytest.raises(Fault) as caught:
        launched(REPLACE.replace("%x4, 64", "%x4, 60") + COPY + LOAD, array)
    assert type(caught.value) is Undefined
    assert (
        caught.value.message == "the tensor map is invalid: a row of the box has 120 bytes, expected a multiple of 16"
    )
    with pytest.raises(Fault) as caught:
        launched("mov.u32 %x4, 256; tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], %x4;", array)
    assert caught.value.message == "a .rank of 256"


def test_a_map_in_parameters_is_not_changed() -> None:
    array, _ = array_and_box()
    with pytest.raises(Fault) as caught:
        launched("cvta.param.u64 %y3, array; tensormap.replace.tile.global_address.b1024.b64 [%y3], %y0;", array)
    assert caught.value.message == "a tensor map that is changed in param memory; it may be in global or shared memory"


def test_a_map_in_shared_memory_is_not_used() -> None:
    array, _ = array_and_box()
    text = REPLACE + "mov.u64 %y3, map; cvta.shared.u64 %y2, %y3;" + LOAD
    with pytest.raises(Fault) as caught:
        launched(text, array)
    assert caught.value.message == "a tensor map in shared memory; it may be in param, const or global memory"


def test_descriptors_that_triton_makes_on_the_device() -> None:
    """A matmul whose sizes are no multiples of its tiles, stored and then added once more: twice the product."""
    rng = np.random.default_rng(0)
    m, n, k = 100, 72, 160
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c, maps = np.zeros((m, n), np.float16), np.zeros(4 * 384, np.uint8)
    module = program("triton_matmul_made_descriptors_sm90")
    profile = module.launch("matmul_made_descriptors", (2, 2), 128, [a, b, c, m, n, k, maps, 0], shared=49176)
    np.testing.assert_array_equal(c, (2 * (a.astype(np.float32) @ b.astype(np.float32))).astype(np.float16))
    # Each block loads whole boxes of 64 x 64 from both, as many as cover k, and stores a box twice.
    assert profile.total("async_shared_store_bytes") == 4 * 3 * 2 * 64 * 64 * 2
    assert profile.total("async_global_store_bytes") == 2 * c.nbytes


REFUSED = [
    ("tensormap.replace.tile.rank.shared::cta.b1024.b64 [map], %y0;", ".rank has type .b32, not .b64"),
    ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], 0, 1;", "tensormap has 3 operands, expected 2"),
    ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 5, 1;", ".box_dim has ordinals 0 to 4, not 5"),
    (
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], 4, %y0;",
        ".global_stride has ordinals 0 to 3, not 4",
    ),
    (
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], %x0;",
        "an operand of tensormap must be an integer constant",
    ),
    (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%y2], [map], 64;",
        "a tensor map has 128 bytes, not 64",
    ),
    ("fence.proxy.tensormap::generic.acquire.gpu [%y2], 64;", "a tensor map has 128 bytes, not 64"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        launched(text, array_and_box()[0])
    assert str(caught.value).startswith(f"PTX line {caught.value.line}: {message}\n")
