"""Questions about textures, samplers and surfaces, and their variables by address: the ISA's tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.emulator import Module, PTXError, Surface, Texture, Undefined

VARIABLES = """.global .surfref before;
.global .texref t[2];
.global .samplerref s;
.global .b64 plain;
"""


def module(text: str) -> Module:
    """%r0 the thread, %rd0 the first parameter, %rd2 the thread's 16 bytes of out."""
    return Module(f""".version 8.0
.target sm_80, texmode_independent
.address_size 64
{VARIABLES}
.visible .entry k(.param .u64 handle, .param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>; .reg .f32 %f<9>;
  ld.param.u64 %rd0, [handle]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 16, %rd1;
  {text}
  ret;
}}""")


def run(kernel: Module, argument: Any = 0, threads: int = 1) -> Any:
    out = np.zeros((threads, 4), np.uint32)
    kernel.launch("k", 1, threads, [argument, out])
    return out


KINDS = ("texref", "samplerref", "surfref")


def asked(operand: str) -> str:
    """The three answers about a register, and how many of 9 predicates are set."""
    asks = "".join(f"istypep.{kind} %p{i}, {operand}; selp.u32 %r{i + 1}, 1, 0, %p{i};" for i, kind in enumerate(KINDS))
    return asks + "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r0};"


@pytest.mark.parametrize(
    ("name", "answers"),
    [("t", [1, 0, 0]), ("t+8", [1, 0, 0]), ("t+4", [0, 0, 0]), ("s", [0, 1, 0]), ("before", [0, 0, 1]), ("plain", [0, 0, 0])],
)  # fmt: skip
def test_the_type_of_a_variable_by_its_address(name: str, answers: list[int]) -> None:
    assert run(module(f"mov.u64 %rd3, {name}; {asked('%rd3')}"))[0, :3].tolist() == answers


def test_the_type_of_a_handle() -> None:
    asks = "".join(
        f"istypep.{kind} %p{i}, %rd0; selp.u32 %r{i + 1}, 1, 0, %p{i};" for i, kind in ((0, "texref"), (2, "surfref"))
    )
    kernel = module(asks + "st.global.v2.u32 [%rd2], {%r1, %r3};")
    assert run(kernel, Texture(np.zeros(4, np.float32)))[0, :2].tolist() == [1, 0]
    assert run(kernel, Surface(np.zeros(4, np.float32)))[0, :2].tolist() == [0, 1]
    assert run(kernel, 12345)[0, :2].tolist() == [0, 0]


def test_a_texture_is_not_said_to_be_a_sampler_or_not() -> None:
    with pytest.raises(Undefined) as caught:
        run(module(asked("%rd0")), Texture(np.zeros(4, np.float32)))
    expected = "istypep.samplerref of the handle of a texture: the ISA does not say whether its sampler counts"
    assert caught.value.message == expected


def test_each_thread_asks_about_its_own() -> None:
    text = "mov.u64 %rd3, t; mov.u64 %rd4, s; setp.lt.u32 %p3, %r0, 20; selp.b64 %rd3, %rd3, %rd4, %p3;"
    found = run(module(text + asked("%rd3")), threads=40)
    assert found[:, :3].tolist() == [[1, 0, 0]] * 20 + [[0, 1, 0]] * 20


def test_textures_by_the_address_of_their_variable() -> None:
    """The ISA's indirect access: tex and txq of an address have what the variable there holds."""
    text = """mov.u64 %rd3, t; mad.wide.u32 %rd3, %r0, 8, %rd3; mov.u64 %rd4, s; mov.f32 %f4, 0f40200000;
      tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd3, %rd4, {%f4}]; cvt.rni.u32.f32 %r1, %f0;
      txq.width.b32 %r2, [%rd3]; st.global.v2.u32 [%rd2], {%r1, %r2};"""
    kernel = module(text)
    textures = Texture(np.array([3, 5, 7], np.float32)), Texture(np.array([10, 20, 30, 40], np.float32))
    kernel.symbols["t"] = np.array([t.handle for t in textures], np.uint64)
    kernel.symbols["s"] = Texture(np.zeros(1, np.float32))
    assert run(kernel, threads=2)[:, :2].tolist() == [[7, 3], [30, 4]]


@pytest.mark.parametrize("texture", [False, True])
@pytest.mark.parametrize("sampler", [False, True])
def test_coordinates_are_normalized_where_both_say_so(texture: bool, sampler: bool) -> None:
    """A sampler that says not forces unnormalized coordinates; one that says so leaves it to the texture."""
    text = """mov.f32 %f4, 0f3F400000; tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, s, {%f4}]; cvt.rni.u32.f32 %r1, %f0;
      txq.force_unnormalized_coords.b32 %r2, [s]; txq.normalized_coords.b32 %r3, [%rd0];
      st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r3};"""
    kernel = module(text)
    kernel.symbols["s"] = Texture(np.zeros(1, np.float32), normalized=sampler)
    values = Texture(np.arange(4, dtype=np.float32), normalized=texture)
    element = 3 if texture and sampler else 0  # 0.75 of 4 elements, or element 0.75
    assert run(kernel, values)[0, :3].tolist() == [element, not sampler, texture]


def test_a_mode_that_needs_normalized_coordinates() -> None:
    text = "mov.f32 %f4, 0f3F400000; tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, s, {%f4}];"
    kernel = module(text)
    kernel.symbols["s"] = Texture(np.zeros(1, np.float32), normalized=True, address="mirror")
    with pytest.raises(Undefined) as caught:
        run(kernel, Texture(np.zeros(4, np.float32)))
    expected = "tex by a sampler of mode mirror, which needs normalized coordinates, of a texture without them"
    assert caught.value.message == expected


def test_levels_and_layouts() -> None:
    text = """mov.u32 %r4, 0; txq.num_mipmap_levels.b32 %r1, [%rd0]; txq.level.height.b32 %r2, [%rd0], 0;
      txq.level.width.b32 %r3, [%rd0], %r4; st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};"""
    assert run(module(text), Texture(np.zeros((5, 6), np.float32)))[0].tolist() == [1, 5, 6, 0]
    layout = "mov.u32 %r1, 9; suq.memory_layout.b32 %r1, [%rd0]; st.global.u32 [%rd2], %r1;"
    assert run(module(layout), Surface(np.zeros((5, 6), np.float32)))[0, 0] == 0


def test_a_level_that_is_not_there() -> None:
    text = "txq.level.width.b32 %r3, [%rd0], %r0;"
    with pytest.raises(Undefined) as caught:
        run(module(text), Texture(np.zeros(4, np.float32)), threads=3)
    assert caught.value.message == "txq.level of level 1 of a texture, which has level 0 only"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("txq.force_unnormalized_coords.b32 %r1, [t]",
         "txq.force_unnormalized_coords.b32 asks a .samplerref, but 't' is a .texref"),
        ("txq.width.b32 %r1, [s]", "txq.width.b32 asks a .texref, but 's' is a .samplerref"),
        ("suq.width.b32 %r1, [t]", "suq.width.b32 asks a .surfref, but 't' is a .texref"),
        ("istypep.b64 %p0, %rd0", "the emulator does not know '.b64' of istypep"),
        ("istypep.texref %p0", "istypep has 1 operands, expected 2"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(module(text + ";"))
    assert str(caught.value).partition(": ")[2].partition("\n")[0] == message
