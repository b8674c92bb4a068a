"""Textures and surfaces, against the formulas of CUDA's Programming Guide written for one fetch at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from weft.emulator import Fault, Misaligned, Module, OutOfBounds, PTXError, Surface, Texture, Undefined

HEAD = ".version 8.0\n.target sm_80{mode}\n.address_size 64\n"
RNG = np.random.default_rng(11)


def fetches(
    geometry: str,
    kind: str = "f32",
    coordinates: str = "f32",
    operand: str = "%rd0",
    mode: str = "",
    before: str = "",
    name: str = "tex",
    offset: str = "",
) -> Module:
    """out[i] = the four channels at the coordinates of thread i, which are rows of 4 words: layer, x, y, z."""
    names = {"1d": "{%x}", "2d": "{%x, %y}", "3d": "{%x, %y, %z, %z}", "a1d": "{%l, %x}", "a2d": "{%l, %x, %y, %y}"} | {
        "cube": "{%x, %y, %z, %z}",
        "acube": "{%l, %x, %y, %z}",
    }
    names = names[geometry]
    register = "f32" if coordinates == "f32" else "b32"
    return Module(f"""{HEAD.format(mode=mode)}{before}
.visible .entry k(.param .u64 handle, .param .u64 places, .param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .{register} %x; .reg .{register} %y; .reg .{register} %z; .reg .b32 %l;
  .reg .{"f32" if kind == "f32" else "b32"} %v<4>;
  ld.param.u64 %rd0, [handle]; ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 16, %rd1; mad.wide.u32 %rd2, %r0, 16, %rd2;
  ld.global.b32 %l, [%rd1]; ld.global.{register} %x, [%rd1+4]; ld.global.{register} %y, [%rd1+8];
  ld.global.{register} %z, [%rd1+12];
  {name}.{geometry}.v4.{kind}.{coordinates} {{%v0, %v1, %v2, %v3}}, [{operand}, {names}]{offset};
  st.global.v4.{"f32" if kind == "f32" else "b32"} [%rd2], {{%v0, %v1, %v2, %v3}};
  ret;
}}""")


def launch(module: Module, texture: Any, places: Any, dtype: Any = np.float32) -> Any:
    """What is found at places, of any length: (N, channels)."""
    places = np.ascontiguousarray(places)
    found = np.zeros((len(places), 4), dtype)
    for start in range(0, len(places), 1024):
        part = slice(start, start + 1024)
        out = found[part].copy()
        module.launch("k", 1, len(out), [texture, places[part].copy(), out])
        found[part] = out
    return found


# ---- the guide's formulas, for one fetch ---------------------------------------------------------------------------------


def texel(values: Any, index: tuple[int, ...], modes: tuple[str, ...], border: float) -> float:
    """An element by indices that may be outside, the outermost first."""
    at: list[int] = []
    for given, n, mode in zip(index, values.shape, modes, strict=True):
        i = given
        if mode == "border" and not 0 <= i < n:
            return border
        if mode == "wrap":
            i -= n * math.floor(i / n)
        elif mode == "mirror":
            while not 0 <= i < n:
                i = -1 - i if i < 0 else 2 * n - 1 - i
        at.append(min(max(i, 0), n - 1))
    return float(values[tuple(at)])


def sample(
    values: Any, place: list[float], modes: tuple[str, ...], linear: bool, normalized: bool, border: float
) -> float:
    """``place`` in the array's order."""
    axes: list[list[tuple[int, float]]] = []
    for given, n, mode in zip(place, values.shape, modes, strict=True):
        x = given
        if mode == "wrap":
            x = x - math.floor(x)
        elif mode == "mirror":
            x = x - math.floor(x) if math.floor(x) % 2 == 0 else 1 - (x - math.floor(x))
        u = x * n if normalized else x
        if not linear:
            i = math.floor(u)
            axes.append([(min(i, n - 1) if mode in ("wrap", "mirror") else i, 1.0)])
        else:
            i = math.floor(u - 0.5)
            a = math.floor((u - 0.5 - i) * 256 + 0.5) / 256
            axes.append([(i, 1 - a), (i + 1, a)])
    return sum(
        texel(values, tuple(i for i, _ in corner), modes, border) * math.prod(w for _, w in corner)
        for corner in itertools.product(*axes)
    )


def places_for(shape: tuple[int, ...], normalized: bool, n: int = 60) -> Any:
    """Rows of layer, x, y, z in the range -1.5 to 2.5 times the size, with texels' edges and centres among them."""
    size = np.array([*reversed(shape), *[1] * (3 - len(shape))], np.float64)
    x = RNG.uniform(-1.5, 2.5, (n, 3)) * size
    x[::3] = np.round(x[::3] * 2) / 2
    x = np.concatenate([x, np.stack([size, size - 0.5, 0 * size, 0 * size + 0.5, -size])])
    rows = np.zeros((len(x), 4), np.float32)
    rows[:, 1:] = x / size if normalized else x
    return rows


@pytest.mark.parametrize("filtered", ["point", "linear"])
@pytest.mark.parametrize(
    ("mode", "normalized"),
    [("clamp", False), ("border", False), ("clamp", True), ("border", True), ("wrap", True), ("mirror", True)],
)
@pytest.mark.parametrize("shape", [(5,), (1,), (4, 7), (3, 4, 5)])
def test_fetches(shape: tuple[int, ...], mode: str, normalized: bool, filtered: str) -> None:
    values = RNG.integers(-50, 50, shape).astype(np.float32)
    texture = Texture(values, address=mode, filter=filtered, normalized=normalized, border=7.5)
    rows = places_for(shape, normalized)
    found = launch(fetches(f"{len(shape)}d"), texture, rows)
    expected = [
        sample(
            values,
            [float(v) for v in row[len(shape) : 0 : -1]],
            (mode,) * len(shape),
            filtered == "linear",
            normalized,
            7.5,
        )
        for row in rows
    ]
    assert found[:, 0].tolist() == np.array(expected, np.float32).tolist()
    assert not found[:, 1:].any(), "channels that are not there"


def test_a_mode_for_each_axis() -> None:
    values = RNG.integers(-50, 50, (4, 6)).astype(np.float32)
    modes = ("mirror", "wrap")
    rows = places_for((4, 6), True)
    found = launch(fetches("2d"), Texture(values, address=modes, normalized=True, filter="linear"), rows)
    expected = [sample(values, [float(row[2]), float(row[1])], modes, True, True, 0) for row in rows]
    assert found[:, 0].tolist() == np.array(expected, np.float32).tolist()


def test_weights_have_eight_bits() -> None:
    """Between 0 and 1: 1/256 of the way from each place in 1/512ths, halves up."""
    rows = np.zeros((513, 4), np.float32)
    rows[:, 1] = 0.5 + np.arange(513) / 512
    found = launch(fetches("1d"), Texture(np.array([0, 1], np.float32), filter="linear"), rows)[:, 0]
    assert (found * 256).tolist() == [(i + 1) // 2 for i in range(513)]


def dyadic(size: tuple[int, int], n: int = 80) -> Any:
    """Rows of layer, x, y, z, normalized, at odd multiples of 1/16 of a texel: all arithmetic on them is exact."""
    rows = np.zeros((n, 4), np.float32)
    for axis, texels in enumerate(reversed(size), 1):
        rows[:, axis] = (2 * RNG.integers(-12 * texels, 20 * texels, n) + 1) / 16 / texels
    return rows


@pytest.mark.parametrize("filtered", ["point", "linear"])
@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
def test_offsets_are_texels(mode: str, filtered: str) -> None:
    """A fetch with an offset of (-3, 2) texels is one without, so many texels further."""
    size = 4, 8
    texture = Texture(
        RNG.integers(-50, 50, size).astype(np.float32), address=mode, filter=filtered, normalized=True, border=7.5
    )
    rows = dyadic(size)
    moved = rows + np.array([0, -3 / 8, 2 / 4, 0], np.float32)
    found = launch(fetches("2d", offset=", {-3, 2}"), texture, rows)
    assert found.tolist() == launch(fetches("2d"), texture, moved).tolist()


def test_offsets_of_three_axes_and_of_whole_coordinates() -> None:
    values = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    rows = np.array([[0, 1, 2, 3], [0, 0, 0, 0]], np.int32)
    found = launch(fetches("3d", coordinates="s32", offset=", {1, 2, -1, 0}"), Texture(values), rows)
    assert found[:, 0].tolist() == [values[2, 4, 2], values[0, 2, 1]]


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("offset", [(0, 0), (2, -1)])
def test_gathers(mode: str, offset: tuple[int, int]) -> None:
    """The texels (i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j), where a linear fetch is between i and i + 1, j and j + 1. Where
    a coordinate is mirrored, so are i and i + 1."""
    size = 4, 8
    values = RNG.integers(-50, 50, (*size, 2)).astype(np.float32)
    texture = Texture(values, address=mode, normalized=True, channels=True, border=[7.5, 3.5])
    rows = dyadic(size)
    written = "" if offset == (0, 0) else ", {2, -1}"
    for channel, name in enumerate("rg"):
        found = launch(fetches("2d", name=f"tld4.{name}", offset=written), texture, rows)
        for row, four in zip(rows.tolist(), found.tolist(), strict=True):
            i, j = (math.floor(row[1 + a] * size[1 - a] - 0.5) + offset[a] for a in (0, 1))
            turned = [mode == "mirror" and math.floor(row[1 + a]) % 2 for a in (0, 1)]
            (west, east), (north, south) = (
                (n + 1, n) if t else (n, n + 1) for n, t in zip((i, j), turned, strict=True)
            )
            corners = (west, south), (east, south), (east, north), (west, north)
            expected = [texel(values[..., channel], (y, x), (mode, mode), [7.5, 3.5][channel]) for x, y in corners]
            assert four == expected
    assert not launch(fetches("2d", name="tld4.b"), texture, rows).any()


def test_gathers_of_integers_and_layers() -> None:
    values = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4) - 10
    rows = np.zeros((2, 4), np.float32)
    rows[:, 1:3] = 1.5, 1.25
    rows.view(np.int32)[:, 0] = 0, 1
    module = fetches("a2d", "s32", name="tld4.r")
    found = launch(module, Texture(values, layered=True), rows, np.int32)
    assert found.tolist() == [[values[n, 1, 1], values[n, 1, 2], values[n, 0, 2], values[n, 0, 1]] for n in (0, 1)]


def test_all_texels_are_resident_and_a_texture_is_its_base_level() -> None:
    texture = Texture(np.arange(6, dtype=np.float32).reshape(2, 3))
    out = np.zeros((1, 4), np.uint32)
    text = """mov.u32 %r1, 1; mov.u32 %r2, 0; setp.ne.u32 %p, 0, 0;
      tex.base.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}|%p, [%rd0, {%r1, %r1}];
      selp.u32 %r3, 5, 6, %p; st.global.v2.b32 [%rd2], {%f0, %r3};"""
    surface_kernel(".reg .pred %p; .reg .f32 %f<4>; " + text).launch("k", 1, 1, [texture, out])
    assert out.view(np.float32)[0, 0] == 4
    assert out[0, 1] == 5


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_halves(channels: int) -> None:
    values = np.arange(3 * channels, dtype=np.float32).reshape(3, channels) * 1000.3 - 1e4
    texture = Texture(values[:, 0].copy() if channels == 1 else values, channels=channels > 1)
    text = (
        """cvt.rn.f32.u32 %f, %r0; tex.1d.v2.f16x2.f32 {%r1, %r2}, [%rd0, {%f}]; st.global.v2.b32 [%rd2], {%r1, %r2};"""
    )
    out = np.zeros((3, 4), np.uint32)
    surface_kernel(".reg .f32 %f; " + text).launch("k", 1, 3, [texture, out])
    found = out[:, :2].copy().view(np.float16)
    assert found[:, :channels].tolist() == values.astype(np.float16).tolist()
    assert not found[:, channels:].any()


@pytest.mark.parametrize("geometry", ["a1d", "a2d"])
def test_layers(geometry: str) -> None:
    """The nearest layer there is; no filter between layers."""
    shape = (3, 5) if geometry == "a1d" else (3, 4, 5)
    values = RNG.integers(-50, 50, shape).astype(np.float32)
    rows = places_for(shape[1:], False)
    rows[:, 0].view(np.uint32)[...] = np.arange(len(rows)) % 5
    found = launch(fetches(geometry), Texture(values, filter="linear", layered=True), rows)
    expected = [
        sample(
            values[min(i % 5, 2)],
            [float(v) for v in row[len(shape) - 1 : 0 : -1]],
            ("clamp",) * (len(shape) - 1),
            True,
            False,
            0,
        )
        for i, row in enumerate(rows)
    ]
    assert found[:, 0].tolist() == np.array(expected, np.float32).tolist()


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_channels(channels: int) -> None:
    values = RNG.integers(-50, 50, (6, channels)).astype(np.float16)
    rows = np.zeros((6, 4), np.float32)
    rows[:, 1] = np.arange(6) + 0.5
    found = launch(fetches("1d"), Texture(values, channels=True), rows)
    assert np.array_equal(found[:, :channels], values) and not found[:, channels:].any()


@pytest.mark.parametrize(("dtype", "largest"), [("uint8", 255), ("int8", 127), ("uint16", 65535), ("int16", 32767)])
def test_normalized_floats(dtype: str, largest: int) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, info.max], dtype)
    rows = np.zeros((5, 4), np.float32)
    rows[:, 1] = np.arange(5) + 0.5
    found = launch(fetches("1d"), Texture(values, read="normalized"), rows)[:, 0]
    assert found.tolist() == np.maximum(values.astype(np.float64) / largest, -1).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("dtype", "kind"), [("uint8", "u32"), ("int8", "s32"), ("int16", "s32"), ("uint32", "u32"), ("int32", "s32")]
)
def test_integers_by_whole_coordinates(dtype: str, kind: str) -> None:
    """As tex1Dfetch: the element of a number; beyond the ends the nearest, or the border."""
    info = np.iinfo(dtype)
    values = np.array([info.min, 3, info.max], dtype)
    rows = np.zeros((5, 4), np.int32)
    rows[:, 1] = np.arange(5) - 1
    out = np.int32 if kind == "s32" else np.uint32
    clamped = launch(fetches("1d", kind, "s32"), Texture(values), rows, out)[:, 0]
    assert clamped.tolist() == [values[0], *values, values[-1]]
    bordered = launch(fetches("1d", kind, "s32"), Texture(values, address="border", border=9), rows, out)[:, 0]
    assert bordered.tolist() == [9, *values, 9]


def test_handles_of_several_textures() -> None:
    """Each thread has its own, from an array; a launch below 0 finds its own values."""
    textures = [Texture(np.full(2, i, np.float32)) for i in range(4)]
    handles = np.array([t.handle for t in textures] * 8, np.uint64)
    module = Module(f"""{HEAD.format(mode="")}
.visible .entry k(.param .u64 handles, .param .u64 out) {{
  .reg .b32 %r0; .reg .b64 %rd<9>; .reg .f32 %v<5>;
  ld.param.u64 %rd0, [handles]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.f32 %v4, 0f00000000;
  mad.wide.u32 %rd2, %r0, 8, %rd0; ld.global.u64 %rd3, [%rd2]; mad.wide.u32 %rd4, %r0, 4, %rd1;
  tex.1d.v4.f32.f32 {{%v0, %v1, %v2, %v3}}, [%rd3, {{%v4}}]; st.global.f32 [%rd4], %v0; ret;
}}""")
    out = np.zeros(32, np.float32)
    module.launch("k", 1, 32, [handles, out])
    assert out.tolist() == [0, 1, 2, 3] * 8


def test_references_of_the_module() -> None:
    """A texref, and in independent mode a sampler beside it."""
    values = np.array([1, 2, 4, 8], np.float32)
    rows = np.zeros((4, 4), np.float32)
    rows[:, 1] = [0.5, 1.0, 2.0, 9.0]
    one = fetches("1d", operand="t", before=".global .texref t;\n")
    texture = Texture(values)
    one.symbols["t"] = texture
    assert launch(one, 0, rows)[:, 0].tolist() == [1, 2, 4, 8]
    two = fetches(
        "1d", operand="t, s", mode=", texmode_independent", before=".global .texref t;\n.global .samplerref s;\n"
    )
    two.symbols["t"], two.symbols["s"] = texture, Texture(values[:1], filter="linear", address="border")
    assert launch(two, 0, rows)[:, 0].tolist() == [1, 1.5, 3, 0]


@pytest.mark.parametrize(
    ("geometry", "texture", "sampler", "message"),
    [
        ("2d", (4, 4), (4,), "tex of .2d with a sampler of 1 axis: it needs an address mode for each of 2"),
        ("1d", (4,), (2, 4), "tex of .1d with a sampler of 2 axes: it needs an address mode for each of 1"),
        ("3d", (2, 4, 4), (4, 4), "tex of .3d with a sampler of 2 axes: it needs an address mode for each of 3"),
    ],
)
def test_a_sampler_of_other_axes(
    geometry: str, texture: tuple[int, ...], sampler: tuple[int, ...], message: str
) -> None:
    module = fetches(
        geometry, operand="t, s", mode=", texmode_independent", before=".global .texref t;\n.global .samplerref s;\n"
    )
    module.symbols["t"], module.symbols["s"] = (
        Texture(np.zeros(texture, np.float32)),
        Texture(np.zeros(sampler, np.float32)),
    )
    with pytest.raises(Undefined) as caught:
        launch(module, 0, np.zeros((1, 4), np.float32))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("kind", "texture", "message"),
    [
        ("f32", 5, "0x5 is the handle of no texture"),
        ("f32", Surface(np.zeros(4, np.float32)), None),
        (
            "u32",
            Texture(np.zeros(4, np.float32)),
            "tex of .u32 from a texture of float32, whose read mode gives floats",
        ),
        ("f32", Texture(np.zeros(4, np.uint8)), "tex of .f32 from a texture of uint8, whose read mode gives integers"),
        ("f32", Texture(np.zeros((4, 4), np.float32)), "tex of .1d from a texture of 2 axes"),
        ("f32", Texture(np.zeros((4, 4), np.float32), layered=True), "tex of .1d from a texture of 1 axis and layers"),
    ],
)
def test_faults(kind: str, texture: Any, message: str | None) -> None:
    with pytest.raises(Undefined) as caught:
        launch(fetches("1d", kind), texture, np.zeros((1, 4), np.float32), np.uint32 if kind == "u32" else np.float32)
    assert caught.value.message == (message or f"0x{texture.handle:x} is the handle of no texture")


FLOATS = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Texture(np.zeros(4)), "Texture: elements of type float64 are not among uint8, int8, uint16, "
         "int16, uint32, int32, float16, float32"),
        (lambda: Texture(np.zeros((2, 2, 2, 2), np.float32)),
         "Texture: the array has 4 axes, expected 1 to 3"),
        (lambda: Texture(np.zeros((2, 2, 2, 2), np.float32), layered=True),
         "Texture: the array has 4 axes, expected 2 to 3, the first of layers"),
        (lambda: Texture(np.zeros((), np.float32)), "Texture: the array has 0 axes, expected 1 to 3"),
        (lambda: Surface(np.zeros(4, np.float32), layered=True, channels=True),
         "Surface: the array has 1 axis, expected 3 to 4, the first of layers, the last of channels"),
        (lambda: Texture(np.zeros(4, np.float32), channels=True),
         "Texture: the array has 1 axis, expected 2 to 4, the last of channels"),
        (lambda: Texture(np.zeros((2, 3), np.float32), channels=True), "Texture: elements have 3 channels, expected 1, 2 or 4"),
        (lambda: Texture(FLOATS[:0]), "Texture: the array has no elements"),
        (lambda: Texture(FLOATS, address="wrap"), "Texture: address 'wrap' needs normalized coordinates"),
        (lambda: Texture(FLOATS, address="round"), "Texture: address is 'round', expected one of clamp, border, wrap, mirror"),
        (lambda: Texture(FLOATS, address=("clamp", "clamp")), "Texture: address has 2 modes, expected 1"),
        (lambda: Texture(FLOATS, filter="cubic"), "Texture: filter is 'cubic', expected point or linear"),
        (lambda: Texture(FLOATS, read="raw"), "Texture: read is 'raw', expected element or normalized"),
        (lambda: Texture(FLOATS, read="normalized"), "Texture: elements of type float32 are not read as normalized floats"),
        (lambda: Texture(np.zeros(4, np.uint8), filter="linear"),
         "Texture: a linear filter needs floats: read='normalized', or such elements"),
        (lambda: Surface(FLOATS[::2]), "Surface: the array is not contiguous"),
    ],
)  # fmt: skip
def test_what_cuda_does_not_have(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == message


# ---- cube maps -----------------------------------------------------------------------------------------------------------


def cube_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The Programming Guide's table of cubemap fetches: the face, and the place on it from 0 to 1."""
    if abs(x) > abs(y) and abs(x) > abs(z):
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif abs(y) > abs(x) and abs(y) > abs(z):
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("layered", [False, True])
def test_cube_maps(layered: bool, filter: str) -> None:
    faces = RNG.integers(0, 1000, (18 if layered else 6, 8, 8)).astype(np.float32)
    texture = Texture(faces, cube=True, layered=layered, normalized=True, filter=filter)
    rows = np.zeros((200, 4), np.float32)
    rows[:, 1:] = RNG.integers(-64, 65, (200, 3)) / 32
    rows = rows[np.abs(rows[:, 1:]).max(axis=1) > np.sort(np.abs(rows[:, 1:]), axis=1)[:, 1]]  # one axis is the longest
    layers = RNG.integers(0, 5, len(rows)) if layered else np.zeros(len(rows), np.int64)
    rows.view(np.uint32)[:, 0] = layers
    found = launch(fetches("acube" if layered else "cube"), texture, rows)[:, 0]
    chosen: set[int] = set()
    for value, layer, row in zip(found, layers, rows.tolist(), strict=True):
        face, u, v = cube_face(*row[1:])
        chosen.add(face)
        values = faces[6 * min(layer, 2) + face]
        wanted = sample(values, [v, u], ("clamp", "clamp"), filter == "linear", True, 0)
        assert value == pytest.approx(wanted, abs=4), (row, face)  # a weight of 1 / 256 more or less
        assert filter == "linear" or value == wanted
    assert chosen == set(range(6))


def test_edges_of_cube_maps() -> None:
    """Where axes are as long as each other z is chosen before y, and y before x; the origin has the middle of a face."""
    faces = np.repeat(np.arange(6, dtype=np.float32), 4).reshape(6, 2, 2)
    places = np.array([(1, 1, 1), (1, 1, -1), (1, 1, 0.5), (-1, -1, 0), (-1, 0, 1), (0, 0, 0)], np.float32)
    rows = np.concatenate((np.zeros((6, 1), np.float32), places), axis=1)
    found = launch(fetches("cube"), Texture(faces, cube=True, normalized=True), rows)[:, 0]
    assert found.tolist() == [4, 5, 2, 3, 4, 4]


def test_cube_maps_gather() -> None:
    faces = RNG.integers(0, 1000, (6, 4, 4)).astype(np.float32)
    rows = np.array([(0, 1, 0.1, 0.2), (0, 0.1, -1, 0.3)], np.float32)  # of faces 0 and 3
    found = launch(fetches("cube", name="tld4.r"), Texture(faces, cube=True, normalized=True), rows)
    for corners, row in zip(found, rows.tolist(), strict=True):
        face, u, v = cube_face(*row[1:])
        i, j = math.floor(u * 4 - 0.5), math.floor(v * 4 - 0.5)
        assert corners.tolist() == [faces[face, j + b, i + a] for b, a in ((1, 0), (1, 1), (0, 1), (0, 0))]


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((5, 4, 4), {}, "a cube map has 5 faces, expected 6"),
        ((10, 4, 4), {"layered": True}, "a cube map has 10 faces, expected a multiple of 6"),
        ((6, 4, 5), {}, "the faces of a cube map have 4 by 5 elements, expected squares"),
        ((6, 4), {}, "the array has 2 axes, expected 3, the first of faces"),
        ((6, 4, 4), {"normalized": False}, "a cube map needs normalized coordinates"),
    ],
)
def test_cube_maps_that_are_none(shape: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="Texture") as caught:
        given: dict[str, Any] = {"cube": True, "normalized": True} | options
        Texture(np.zeros(shape, np.float32), **given)
    assert str(caught.value) == f"Texture: {message}"


@pytest.mark.parametrize(
    ("geometry", "options", "has"),
    [
        ("cube", {}, "2 axes and layers"),
        ("acube", {"cube": True}, "a cube"),
        ("cube", {"cube": True, "layered": True}, "a cube and layers"),
        ("a2d", {"cube": True}, "a cube"),
    ],
)
def test_cube_maps_and_others(geometry: str, options: dict[str, Any], has: str) -> None:
    texture = Texture(np.zeros((6, 4, 4), np.float32), normalized=True, **(options or {"layered": True}))
    with pytest.raises(Undefined) as caught:
        launch(fetches(geometry), texture, np.zeros((1, 4), np.float32))
    assert caught.value.message == f"tex of .{geometry} from a texture of {has}"


# ---- surfaces ------------------------------------------------------------------------------------------------------------


def surface_kernel(text: str) -> Module:
    """%r0 the thread, %rd0 the surface, %rd2 the thread's 16 bytes of out."""
    return Module(f"""{HEAD.format(mode="")}
.visible .entry k(.param .u64 handle, .param .u64 out) {{
  .reg .b32 %r<16>; .reg .b64 %rd<9>; .reg .b16 %h<4>;
  ld.param.u64 %rd0, [handle]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 16, %rd1;
  {text} ret;
}}""")


def run(text: str, surface: Any, threads: int = 4) -> Any:
    out = np.zeros((threads, 4), np.uint32)
    surface_kernel(text).launch("k", 1, threads, [surface, out])
    return out


def test_surface_loads() -> None:
    """Bytes along x, elements along the others."""
    values = np.arange(3 * 8, dtype=np.uint32).reshape(3, 8)
    text = """mul.lo.u32 %r1, %r0, 8; mov.u32 %r2, 2; suld.b.2d.v2.b32.trap {%r3, %r4}, [%rd0, {%r1, %r2}];
      st.global.v2.u32 [%rd2], {%r3, %r4};"""
    assert run(text, Surface(values))[:, :2].tolist() == values[2].reshape(4, 2).tolist()


@pytest.mark.parametrize(("geometry", "place"), [("3d", "{%r1, %r5, %r6, %r6}"), ("a2d", "{%r6, %r1, %r5, %r5}")])
def test_surface_stores_of_three_axes(geometry: str, place: str) -> None:
    values = np.zeros((2, 3, 4), np.uint16)
    text = "mul.lo.u32 %r1, %r0, 2; mov.u32 %r5, 2; mov.u32 %r6, 1; cvt.u16.u32 %h0, %r0;"
    text += f"sust.b.{geometry}.b16.trap [%rd0, {place}], {{%h0}};"
    run(text, Surface(values, layered=geometry == "a2d"))
    expected = np.zeros((2, 3, 4), np.uint16)
    expected[1, 2] = np.arange(4)
    assert np.array_equal(values, expected)


@pytest.mark.parametrize(("outside", "expected"), [("clamp", [10, 10, 11, 11]), ("zero", [0, 10, 11, 0])])
def test_outside_of_a_surface(outside: str, expected: list[int]) -> None:
    values = np.array([10, 11], np.uint32)
    text = "add.s32 %r1, %r0, -1; mul.lo.s32 %r1, %r1, 4;"
    text += f"suld.b.1d.b32.{outside} {{%r3}}, [%rd0, {{%r1}}]; st.global.u32 [%rd2], %r3;"
    assert run(text, Surface(values))[:, 0].tolist() == expected
    text = f"add.s32 %r1, %r0, -1; mul.lo.s32 %r1, %r1, 4; sust.b.1d.b32.{outside} [%rd0, {{%r1}}], {{%r0}};"
    run(text, Surface(values))
    assert values.tolist() == ([1, 3] if outside == "clamp" else [1, 2])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_stores_of_elements(dtype: str, channels: int) -> None:
    """x counts elements, and 32-bit values become the surface's."""
    values = np.zeros((2, 4, channels), dtype)
    given = np.array([[5, -7, 9, -11], [1, 2, 3, -4], [-128, 127, 0, 1], [8, -8, 100, -100]])
    given = np.abs(given) if dtype.startswith("u") else given
    words = (given * 0.3).astype(np.float32).view(np.uint32) if dtype.startswith("f") else given.astype(np.uint32)
    lines = [
        f"setp.eq.u32 %p, %r0, {i}; " + " ".join(f"@%p mov.u32 %r{4 + c}, {int(words[i, c])};" for c in range(4))
        for i in range(4)
    ]
    text = " ".join(lines) + "mov.u32 %r1, 1; sust.p.2d.v4.b32.trap [%rd0, {%r0, %r1}], {%r4, %r5, %r6, %r7};"
    surface = Surface(values if channels > 1 else values[..., 0], channels=channels > 1)
    run(".reg .pred %p; " + text, surface)
    expected = (given * 0.3).astype(np.float32).astype(dtype) if dtype.startswith("f") else given.astype(dtype)
    assert not values[0].any()
    assert np.array_equal(values[1], expected[:, :channels])


@pytest.mark.parametrize(("outside", "expected"), [("clamp", [2, 0, 5]), ("zero", [0, 0, 0])])
def test_stores_of_elements_outside(outside: str, expected: list[int]) -> None:
    """Threads 0 to 3 store at -2, 1, 4 and 7 of 3: their number and 2."""
    values = np.zeros(3, np.uint16)
    text = "mul.lo.u32 %r1, %r0, 3; sub.u32 %r1, %r1, 2; add.u32 %r2, %r0, 2;"
    run(text + f"sust.p.1d.b32.{outside} [%rd0, {{%r1}}], {{%r2}};", Surface(values))
    assert values.tolist() == [expected[0], 3, expected[2]]


@pytest.mark.parametrize(
    ("operation", "expected"), [("add", 17 + 28), ("min", 0), ("max", 17), ("and", 0), ("or", 17 | 7)]
)
@pytest.mark.parametrize("how", ["b", "p"])
def test_reductions(operation: str, expected: int, how: str) -> None:
    """Eight threads with their numbers and the 17 that is there: 28 is the sum of 0 to 7."""
    values = np.array([99, 17], np.uint32)
    kind = "b32" if how == "p" else "u32" if operation in ("add", "min", "max") else "b32"
    text = f"mov.u32 %r1, {1 if how == 'p' else 4}; sured.{how}.{operation}.1d.{kind}.trap [%rd0, {{%r1}}], %r0;"
    run(text, Surface(values), 8)
    assert values.tolist() == [99, expected]


def test_reductions_are_signed_as_their_types_say() -> None:
    text = "sub.u32 %r3, %r0, 3; mov.u32 %r1, 0; "
    signed = np.array([-2], np.int32)
    run(text + "sured.p.min.1d.b32.trap [%rd0, {%r1}], %r3;", Surface(signed))
    assert signed.tolist() == [-3]
    unsigned = np.array([7], np.uint32)
    run(text + "sured.p.max.1d.b32.trap [%rd0, {%r1}], %r3;", Surface(unsigned))
    assert unsigned.tolist() == [2**32 - 1]
    run(text + "sured.b.max.1d.s32.trap [%rd0, {%r1}], %r3;", Surface(unsigned))
    assert unsigned.tolist() == [0]
    wide = np.array([2**31, 5], np.uint32)  # one number of 64 bits
    text = "mov.u64 %rd3, 0x80000000; mov.u32 %r1, 0; sured.b.add.1d.u64.trap [%rd0, {%r1}], %rd3;"
    run(text, Surface(wide), 1)
    assert wide.tolist() == [0, 6]


def test_what_a_kernel_stores_it_may_load() -> None:
    values = np.zeros(4, np.uint32)
    text = """mul.lo.u32 %r1, %r0, 4; add.u32 %r2, %r0, 5; sust.b.1d.b32.trap [%rd0, {%r1}], {%r2};
      suld.b.1d.b32.trap {%r3}, [%rd0, {%r1}]; st.global.u32 [%rd2], %r3;"""
    surface = Surface(values)
    assert run(text, surface)[:, 0].tolist() == [5, 6, 7, 8] == values.tolist()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("mul.lo.u32 %r1, %r0, 4; suld.b.1d.b32.trap {%r3}, [%rd0, {%r1}];", OutOfBounds,
         "suld of 4 bytes at {8} of a surface of 8"),
        ("mov.u32 %r1, 2; suld.b.1d.b32.trap {%r3}, [%rd0, {%r1}];", Misaligned,
         "suld of 4 bytes at byte 2 of a row, no multiple of that"),
        ("suld.b.2d.b32.trap {%r3}, [%rd0, {%r0, %r0}];", Undefined, "suld of .2d from a surface of 1 axis"),
        ("sust.b.1d.b32.trap [%rd1, {%r0}], {%r0};", Undefined, "0x1000000100 is the handle of no surface"),
        ("sust.p.1d.b32.trap [%rd0, {%r0}], %r0;", OutOfBounds, "sust of 4 bytes at {8} of a surface of 8"),
    ],
)  # fmt: skip
def test_surface_faults(text: str, kind: type[Fault], message: str) -> None:
    values = np.zeros(2, np.uint32)
    with pytest.raises(kind) as caught:
        run(text, Surface(values))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("array", "text", "message"),
    [
        (np.zeros((4, 2), np.uint8), "sust.p.1d.b32.trap [%rd0, {%r0}], %r0;",
         "sust.p of 1 values to a surface of 2 channels: the others are unpredictable"),
        (np.zeros((4, 2), np.uint8), "mov.u32 %r2, 256; sust.p.1d.v2.b32.trap [%rd0, {%r0}], {%r0, %r2};",
         "sust.p of 0, 256 to a surface of uint8, which cannot hold it"),
        (np.zeros((4, 1), np.int16), "mov.u32 %r2, 0x8000; sust.p.1d.b32.trap [%rd0, {%r0}], %r2;",
         "sust.p of 32768 to a surface of int16, which cannot hold it"),
        (np.zeros((4, 1), np.float32), "sured.p.add.1d.b32.trap [%rd0, {%r0}], %r0;",
         "sured.p of .b32 to a surface of 1 x float32"),
        (np.zeros((4, 2), np.int32), "sured.p.add.1d.b32.trap [%rd0, {%r0}], %r0;",
         "sured.p of .b32 to a surface of 2 x int32"),
    ],
)  # fmt: skip
def test_faults_of_elements(array: Any, text: str, message: str) -> None:
    with pytest.raises(Undefined) as caught:
        run(text, Surface(array, channels=True))
    assert str(caught.value).partition("\n")[0] == f"undefined behaviour: {message}"


def test_a_fault_leaves_a_surface_as_it_was() -> None:
    values = np.zeros(2, np.uint32)
    text = "mul.lo.u32 %r1, %r0, 4; sust.b.1d.b32.clamp [%rd0, {%r1}], {%r1}; sust.b.1d.b32.trap [%rd0, {%r1}], {%r1};"
    with pytest.raises(OutOfBounds):
        run(text, Surface(values))
    assert not values.any()


def test_questions() -> None:
    names = ("width", "height", "depth", "array_size")
    reads = "".join(f"suq.{name}.b32 %r{i + 1}, [%rd0];" for i, name in enumerate(names))
    text = reads + "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};"
    assert run(text, Surface(np.zeros((2, 3, 4), np.uint8)), 1)[0].tolist() == [4, 3, 2, 0]
    assert run(text, Surface(np.zeros((2, 3, 4), np.uint8), layered=True), 1)[0].tolist() == [4, 3, 0, 2]
    texture = Texture(np.zeros((6, 5), np.float32), normalized=True)
    text = (
        reads.replace("suq", "txq").replace("array_size", "normalized_coords")
        + "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};"
    )
    assert run(text, texture, 1)[0].tolist() == [5, 6, 0, 1]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Surface(np.zeros((2, 3), np.float16)), [0x10DD, 0x10B0]),
        (Surface(np.zeros((2, 3, 4), np.uint8), channels=True), [0x10DA, 0x10B5]),
        (Texture(np.zeros((2, 2), np.int16), read="normalized", channels=True), [0x10D1, 0x10B2]),
        (Texture(np.zeros(2, np.int32)), [0x10D9, 0x10B0]),
    ],
)
def test_questions_of_channels(image: Surface | Texture, expected: list[int]) -> None:
    name = "suq" if isinstance(image, Surface) else "txq"
    text = f"{name}.channel_data_type.b32 %r1, [%rd0]; {name}.channel_order.b32 %r2, [%rd0];"
    assert run(text + "st.global.v2.u32 [%rd2], {%r1, %r2};", image, 1)[0, :2].tolist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tex.level.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1}], %r1",
         "the emulator does not know tex.level, a level of a mip map"),
        ("tex.grad.1d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1}], {%r1}, {%r2}",
         "the emulator does not know tex.grad, which chooses a level of a mip map"),
        ("tex.2dms.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1, %r1, %r1}]",
         "the emulator does not know tex.2dms, a multisampled texture"),
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1}], %r1",
         "the emulator does not know the depth compare operand of tex"),
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1}], {%r1, %r2}, %r3",
         "the emulator does not know the depth compare operand of tex"),
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1}], {%r1, %r2, %r3}", "3 offsets, expected 2"),
        ("tex.2d.v4.f16x2.f32 {%r1, %r2}, [%rd0, {%r1, %r1}]", "tex has .v4 results, and .v2.f16x2; not .v4.f16x2"),
        ("tex.2d.v2.f16x2.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1, %r1}]", "4 results for 2 pairs of channels"),
        ("tld4.r.2d.v4.f32.f32 {%r1, %r2}, [%rd0, {%r1, %r1}]", "2 results for 4 texels"),
        ("txq.num_samples.b32 %r1, [%rd0]",
         "the emulator does not know txq.num_samples: there are no multisampled textures"),
        ("txq.addr_mode_1.b32 %r1, [%rd0]",
         "the emulator does not know txq.addr_mode_1: the ISA does not say which number stands for which mode"),
        ("txq.filter_mode.b32 %r1, [%rd0]",
         "the emulator does not know txq.filter_mode: the ISA does not say which number stands for which mode"),
        ("txq.level.array_size.b32 %r1, [%rd0], 0", "txq.level has no .array_size"),
        ("txq.level.width.b32 %r1, [%rd0]", "txq has 2 operands, expected 3"),
        ("sust.p.1d.v2.b32.trap [%rd0, {%r1}], {%r1, %r1, %r1, %r1}", "4 values, expected 2"),
        ("sured.p.add.1d.u32.trap [%rd0, {%r1}], %r1", "sured.p has types .b32 and .b64, not .u32"),
        ("tex.2d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd0, {%r1}]", "tex of .2d has 2 coordinates, not 1"),
        ("tex.2d.v4.u32.s32 {%r1, %r2}, [%rd0, {%r1, %r1}]", "2 results for 4 channels"),
        ("suld.b.1d.v4.b64.trap {%rd3, %rd4, %rd5, %rd6}, [%rd0, {%r1}]",
         "an access of 32 bytes; at most 16 can be accessed at once"),
        ("suld.b.1d.b32.trap {%r1}, [%rd0]", "operand 1 of suld must be a handle and coordinates"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(text + ";", 0)
    assert str(caught.value).partition(": ")[2].partition("\n")[0] == message
