"""ld and st in every space and width, what each check says, and mov and cvta beside them.

Expected values are NumPy views of the same bytes.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator_harness import execute, kernel, run
from weft.emulator import Checks, Misaligned, Module, OutOfBounds, PTXError, Race, Scratch, Uninitialised

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
RANDOM = np.random.default_rng(5)


def simple(body: str, parameters: str = ".param .u64 x, .param .u64 y", before: str = "") -> Module:
    """A kernel ``k``: %tid in %r0, x in %rd0, y in %rd1."""
    return Module(
        f"{HEAD}{before}.visible .entry k({parameters})\n{{\n"
        ".reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .pred %p<10>;\n"
        ".reg .b128 %q<4>;\n"
        "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y];\n"
        f"{body}\nret;\n}}\n"
    )


class TestWidths:
    @pytest.mark.parametrize("space", ["global", "shared", "local", "generic"])
    @pytest.mark.parametrize(
        "kind", ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
    )
    @pytest.mark.parametrize("count", [1, 2, 4])
    def test_what_is_stored_is_loaded(self, space: str, kind: str, count: int) -> None:
        """Thread t copies x[t], ``count`` elements, through its own place in the space to y[t]."""
        size = int(kind[1:]) // 8
        if size * count > 16:
            count = 16 // size
        register = {1: "h", 2: "h", 4: "f" if kind == "f32" else "r", 8: "d" if kind == "f64" else "rd"}[size]
        names = [f"%{register}{i + 4}" for i in range(count)]
        vector = "" if count == 1 else f".v{count}"
        value = names[0] if count == 1 else "{" + ", ".join(names) + "}"
        bytes_each = size * count
        through = {
            "global": "",
            "shared": f"mov.u32 %r3, room; mad.lo.u32 %r3, %r0, {bytes_each}, %r3; st.shared{vector}.{kind} [%r3], {value};"
            f"{''.join(f'mov.b{max(size, 2) * 8} {n}, 0;' for n in names)} ld.shared{vector}.{kind} {value}, [%r3];",
            "local": f"st.local{vector}.{kind} [mine+16], {value};"
            f"{''.join(f'mov.b{max(size, 2) * 8} {n}, 0;' for n in names)} ld.local{vector}.{kind} {value}, [mine+16];",
            "generic": f"mov.u64 %rd3, room; cvta.shared.u64 %rd3, %rd3; mad.wide.u32 %rd3, %r0, {bytes_each}, %rd3;"
            f"st{vector}.{kind} [%rd3], {value};"
            f"{''.join(f'mov.b{max(size, 2) * 8} {n}, 0;' for n in names)} ld{vector}.{kind} {value}, [%rd3];",
        }[space]
        module = simple(f"""
            .shared .align 16 .b8 room[1024]; .local .align 16 .b8 mine[64];
            mad.wide.u32 %rd2, %r0, {bytes_each}, %rd0; mad.wide.u32 %rd19, %r0, {bytes_each}, %rd1;
            ld.global{vector}.{kind} {value}, [%rd2];
            {through}
            st.global{vector}.{kind} [%rd19], {value};""")
        x = RANDOM.integers(0, 256, 64 * bytes_each, np.uint8)
        y = np.zeros_like(x)
        module.launch("k", 1, 64, [x, y])
        np.testing.assert_array_equal(y, x)

    def test_128_bits(self) -> None:
        module = simple(
            "mad.wide.u32 %rd2, %r0, 16, %rd0; mad.wide.u32 %rd3, %r0, 16, %rd1;"
            "ld.global.b128 %q0, [%rd2]; mov.b128 {%rd4, %rd5}, %q0; mov.b128 %q1, {%rd5, %rd4};"
            "st.global.b128 [%rd3], %q1;"
        )
        x = RANDOM.integers(0, 1 << 63, (32, 2)).astype(np.uint64)
        y = np.zeros_like(x)
        module.launch("k", 1, 32, [x, y])
        np.testing.assert_array_equal(y, x[:, ::-1])

    @pytest.mark.parametrize(
        ("kind", "expected"), [("u8", 0x80), ("s8", 0xFFFFFF80), ("b8", 0x80), ("u16", 0xFE80), ("s16", 0xFFFFFE80)]
    )
    def test_into_a_wider_register(self, kind: str, expected: int) -> None:
        """0xFE80 in memory: signed types extend the sign, others zeros (ISA 9.4.1)."""
        module = simple(f"ld.global.{kind} %r1, [%rd0]; st.global.b32 [%rd1], %r1;")
        x, y = np.array([0xFE80], np.uint16), np.zeros(1, np.uint32)
        module.launch("k", 1, 1, [x, y])
        assert y[0] == expected

    def test_from_a_wider_register(self) -> None:
        module = simple("ld.global.u32 %r1, [%rd0]; st.global.u8 [%rd1], %r1; st.global.u16 [%rd1+2], %r1;")
        x, y = np.array([0xAABBCCDD], np.uint32), np.zeros(4, np.uint8)
        module.launch("k", 1, 1, [x, y])
        assert y.tolist() == [0xDD, 0, 0xDD, 0xCC]

    def test_several_threads_to_one_place_the_last_stays(self) -> None:
        module = simple("st.global.u32 [%rd1], %r0;")
        y = np.zeros(1, np.uint32)
        module.launch("k", 1, 64, [y, y], checks=Checks(global_races=False))
        assert y[0] == 63

    def test_generic_addresses_of_several_spaces_at_once(self) -> None:
        """Even threads read shared memory, odd ones global, by one instruction."""
        module = simple("""
            .shared .align 4 .b8 room[128];
            mov.u32 %r1, room; mad.lo.u32 %r1, %r0, 4, %r1; add.u32 %r2, %r0, 500; st.shared.u32 [%r1], %r2;
            mad.wide.u32 %rd2, %r0, 4, %rd0;
            cvt.u64.u32 %rd3, %r1; cvta.shared.u64 %rd3, %rd3;
            and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; selp.b64 %rd4, %rd3, %rd2, %p0;
            ld.u32 %r5, [%rd4];
            mad.wide.u32 %rd5, %r0, 4, %rd1; st.u32 [%rd5], %r5;""")
        x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
        module.launch("k", 1, 32, [x, y])
        np.testing.assert_array_equal(y, np.where(x % 2 == 0, x + 500, x))


class TestParameters:
    def test_structures_and_offsets(self) -> None:
        module = Module(f"""{HEAD}.entry k(.param .u64 y, .param .align 8 .b8 s[24], .param .f32 f, .param .u8 c)
            {{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h; .reg .f32 %f; .reg .f64 %d;
            ld.param.u64 %rd0, [y]; ld.param.v2.u32 {{%r0, %r1}}, [s]; ld.param.f64 %d, [s+8]; ld.param.u16 %h, [s+18];
            ld.param.f32 %f, [f]; ld.param.s8 %r2, [c];
            st.global.v2.u32 [%rd0], {{%r0, %r1}}; st.global.f64 [%rd0+8], %d; st.global.u16 [%rd0+16], %h;
            st.global.f32 [%rd0+20], %f; st.global.u32 [%rd0+24], %r2; ret; }}""")
        s = np.zeros(
            1,
            np.dtype(
                {
                    "names": ["a", "b", "d", "h"],
                    "formats": ["u4", "u4", "f8", "u2"],
                    "offsets": [0, 4, 8, 18],
                    "itemsize": 24,
                }
            ),
        )
        s["a"], s["b"], s["d"], s["h"] = 7, 8, 1.25, 999
        y = np.zeros(28, np.uint8)
        module.launch("k", 1, 1, [y, s.tobytes(), 2.5, -2])
        assert y[:8].view(np.uint32).tolist() == [7, 8]
        assert y[8:16].view(np.float64)[0] == 1.25
        assert y[16:18].view(np.uint16)[0] == 999
        assert y[20:24].view(np.float32)[0] == 2.5
        assert y[24:28].view(np.int32)[0] == -2

    def test_a_parameter_through_its_address(self) -> None:
        module = simple(
            "mov.b64 %rd3, s; cvta.param.u64 %rd4, %rd3; mad.wide.u32 %rd5, %r0, 4, %rd4; ld.u32 %r1, [%rd5];"
            "ld.param.u32 %r2, [%rd3+4]; add.u32 %r1, %r1, %r2; mad.wide.u32 %rd6, %r0, 4, %rd1;"
            "st.global.u32 [%rd6], %r1;",
            ".param .u64 x, .param .u64 y, .param .align 4 .b8 s[16]",
        )
        y = np.zeros(4, np.uint32)
        module.launch("k", 1, 4, [y, y, np.array([1, 20, 300, 4000], np.uint32).tobytes()])
        assert y.tolist() == [21, 40, 320, 4020]

    @pytest.mark.parametrize(("access", "message"), [
        ("ld.param.u64 %rd3, [y+4]", "bytes 4 to 11 of parameter y, which has 8"),
        ("ld.param.u32 %r3, [z]", "'z' is not declared"),
        ("ld.param.v2.u32 %r3, [y]", "1 results for 2 values"),
        ("ld.global.pred %p0, [%rd0]", "predicates cannot be loaded or stored"),
    ])  # fmt: skip
    def test_what_is_refused(self, access: str, message: str) -> None:
        with pytest.raises(PTXError) as caught:
            simple(access + ";").launch("k", 1, 1, [np.zeros(1), np.zeros(1)])
        assert message in str(caught.value)


class TestVariables:
    def test_initial_values(self) -> None:
        before = """.global .align 4 .u32 table[4] = {10, 20, 30};
            .const .align 8 .f64 half = 0d3FE0000000000000;
            .const .align 4 .f32 quarter = 0.25;
            .global .align 8 .u64 where[2] = {generic(table), table+4};
            .global .align 4 .f32 third = 0d3FD5555555555555;
            .global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
            """
        module = simple(
            """
            mov.u64 %rd2, table; mad.wide.u32 %rd2, %r0, 4, %rd2; ld.global.u32 %r1, [%rd2];
            mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r1;
            ld.const.f64 %d0, [half]; st.global.f64 [%rd1+16], %d0; ld.const.f32 %f0, [quarter]; st.global.f32 [%rd1+24], %f0;
            ld.global.u64 %rd4, [where+8]; ld.global.u32 %r2, [%rd4]; st.global.u32 [%rd1+28], %r2;
            ld.global.u8 %r3, [text+4]; st.global.u32 [%rd1+32], %r3;
            ld.global.f32 %f1, [third]; st.global.f32 [%rd1+36], %f1;
            cvta.const.u64 %rd5, half; ld.f64 %d1, [%rd5]; st.global.f64 [%rd1+40], %d1;
            """.replace("cvta.const.u64 %rd5, half", "mov.u64 %rd5, half; cvta.const.u64 %rd5, %rd5"),
            before=before,
        )
        y = np.zeros(48, np.uint8)
        module.launch("k", 1, 4, [y, y])
        assert y[:16].view(np.uint32).tolist() == [10, 20, 30, 0]
        assert y[16:24].view(np.float64)[0] == 0.5 and y[24:28].view(np.float32)[0] == 0.25
        assert y[36:40].view(np.float32)[0] == np.float32(1 / 3)
        assert y[28:32].view(np.uint32)[0] == 20 and y[32] == ord("o") and y[40:48].view(np.float64)[0] == 0.5

    def test_static_and_dynamic_shared_memory_lie_apart(self) -> None:
        """20 bytes, then 8 aligned to 8, then what is dynamic, aligned to 16: at 0, 24, 32."""
        module = simple(
            """
            .shared .align 4 .b8 a[20]; .shared .align 8 .b8 b[8];
            mov.u32 %r1, a; mov.u32 %r2, b; mov.u32 %r3, more; mov.u32 %r4, %total_smem_size; mov.u32 %r5, %dynamic_smem_size;
            st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.u32 [%rd1+16], %r5;""",
            before=".extern .shared .align 16 .b8 more[];\n",
        )
        y = np.zeros(5, np.uint32)
        module.launch("k", 1, 1, [y, y], shared=100)
        assert y.tolist() == [0, 24, 32, 132, 100]

    def test_blocks_have_shared_memory_and_threads_local_memory_of_their_own(self) -> None:
        module = simple("""
            .shared .align 4 .b8 s[4]; .local .align 4 .b8 l[4];
            mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 2, %r0;
            st.local.u32 [l], %r2; setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [s], %r2; bar.warp.sync -1;
            ld.local.u32 %r3, [l]; ld.shared.u32 %r4, [s];
            mad.wide.u32 %rd2, %r2, 8, %rd1; st.global.v2.u32 [%rd2], {%r3, %r4};""")
        y = np.zeros((6, 2), np.uint32)
        module.launch("k", 3, 2, [y, y])
        assert y.tolist() == [[0, 0], [1, 0], [2, 2], [3, 2], [4, 4], [5, 4]]


FAULTS: list[tuple[str, type, str, str]] = [
    ("ld.global.u32 %r1, [%rd0+4096]", OutOfBounds, "out of bounds: read of 4 bytes of global memory",
     "address 0x1000001100: 3520 bytes past the end of 'argument 1' (64 bytes)"),
    ("st.global.u32 [%rd0+-4], %r1", OutOfBounds, "out of bounds: write of 4 bytes of global memory",
     "address 0x10000000fc: 4 bytes before 'argument 0' (64 bytes)"),
    ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+56]", OutOfBounds, "out of bounds: read of 16 bytes of global memory",
     "address 0x1000000138: byte 56 of 'argument 0' (64 bytes)"),
    ("mov.u64 %rd2, 0; ld.u32 %r1, [%rd2]", OutOfBounds, "out of bounds: read of 4 bytes of global memory",
     "address 0x0: 68719476992 bytes before 'argument 0' (64 bytes)"),
    ("ld.shared.u32 %r1, [128]", OutOfBounds, "out of bounds: read of 4 bytes of shared memory",
     "address 0x80 of the block's shared memory (128 bytes)"),
    ("ld.shared.u64 %rd2, [124]", OutOfBounds, "out of bounds: read of 8 bytes of shared memory",
     "address 0x7c of the block's shared memory (128 bytes)"),
    ("st.local.u32 [mine+16], %r1", OutOfBounds, "out of bounds: write of 4 bytes of local memory",
     "address 0x10 of the thread's local memory (16 bytes)"),
    ("ld.global.u32 %r1, [%rd0+2]", Misaligned, "misaligned: read of 4 bytes at an address that is no multiple of 4",
     "address 0x1000000102: byte 2 of 'argument 0' (64 bytes)"),
    ("st.shared.v2.u32 [room+4], {%r1, %r2}", Misaligned, "misaligned: write of 8 bytes at an address that is no multiple of 8",
     "address 0x4 of the block's shared memory (128 bytes)"),
    ("ld.shared.u32 %r1, [room]", Uninitialised, "uninitialised read: read of 4 bytes of shared memory that has not been written",
     "address 0x0 of the block's shared memory (128 bytes)"),
    ("st.shared.u16 [room], %h0; ld.shared.u32 %r1, [room]", Uninitialised,
     "uninitialised read: read of 4 bytes of shared memory that has not been written",
     "address 0x0 of the block's shared memory (128 bytes)"),
    ("ld.local.v2.u64 {%rd2, %rd3}, [mine]", Uninitialised,
     "uninitialised read: read of 16 bytes of local memory that has not been written",
     "address 0x0 of the thread's local memory (16 bytes)"),
    ("ld.global.u32 %r1, [%rd1+8]", Uninitialised,
     "uninitialised read: read of 4 bytes of global memory that has not been written",
     "address 0x1000000308: byte 8 of 'argument 1' (64 bytes)"),
]  # fmt: skip


class TestFaults:
    @pytest.mark.parametrize(("access", "kind", "message", "address"), FAULTS)
    def test_each_is_reported_with_who_did_it(
        self, access: str, kind: type[Exception], message: str, address: str
    ) -> None:
        """Thread (1, 2, 0) of block (1, 0, 0) alone does it."""
        text = access.rpartition("; ")[2]
        use = ""
        if kind is Uninitialised:
            use = f"st.global.u32 [%rd0], {'%r1' if '%r1' in text else '%rd3'}"
            message += f"\n    its value is an operand of PTX line 16 (source kernel.cu:77): {use}"
        module = simple(
            f""".shared .align 16 .b8 room[128]; .local .align 16 .b8 mine[16];
            .loc 1 77 3
            mov.u32 %r30, %tid.y; mov.u32 %r31, %ctaid.x; setp.ne.u32 %p0, %r30, 2; setp.ne.or.u32 %p1, %r31, 1, %p0;
            setp.ne.or.u32 %p2, %r0, 1, %p1;
            @%p2 bra END;
            {access};
            {use};
            END:""",
            before='.file 1 "kernel.cu"\n',
        )
        x = np.zeros(16, np.uint32)
        with pytest.raises(kind) as caught:
            module.launch("k", 2, (2, 3), [x, Scratch(np.zeros(16, np.uint32))])
        who = "  block (1, 0, 0), thread (1, 2, 0)"
        expected = f"{message}\n  kernel k\n  source kernel.cu:77\n  PTX line 15: {text}\n{who}\n  {address}"
        assert str(caught.value) == expected

    @pytest.mark.parametrize(("access", "kind", "message", "address"), FAULTS)
    def test_each_can_be_switched_off(self, access: str, kind: type[Exception], message: str, address: str) -> None:
        module = simple(f".shared .align 16 .b8 room[128]; .local .align 16 .b8 mine[16]; {access};")
        x = np.arange(16, dtype=np.uint32)
        module.launch("k", 1, 1, [x, Scratch(np.zeros(16, np.uint32))], checks=Checks.none())
        np.testing.assert_array_equal(x, np.arange(16))

    @pytest.mark.parametrize("races", [False, True])
    def test_what_is_outside_belongs_to_nobody(self, races: bool) -> None:
        """With bounds checks off a store beyond the end changes none of the memory that there is."""
        module = simple("""
            .shared .align 4 .b8 room[128]; .local .align 4 .b8 mine[16];
            mov.u32 %r1, 7; st.shared.u32 [room], %r1; st.local.u32 [mine], %r1;
            mov.u32 %r2, 9; st.shared.u32 [room+128], %r2; st.local.u32 [mine+16], %r2; st.global.u32 [%rd0+64], %r2;
            ld.shared.u32 %r3, [room]; ld.local.u32 %r4, [mine]; st.global.v2.u32 [%rd1], {%r3, %r4};""")
        x, y = np.zeros(16, np.uint32), np.zeros(2, np.uint32)
        module.launch("k", 1, 1, [x, y], checks=Checks(bounds=False, races=races))
        assert not x.any() and y.tolist() == [7, 7]

    def test_a_misaligned_access_reads_the_bytes_that_are_there(self) -> None:
        module = simple("ld.global.u32 %r1, [%rd0+1]; st.global.u32 [%rd1+2], %r1;")
        x, y = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)
        module.launch("k", 1, 1, [x, y], checks=Checks(alignment=False))
        assert y.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]

    def test_a_launch_that_faults_leaves_the_arrays_as_they_were(self) -> None:
        module = simple("st.global.u32 [%rd0], 5; ld.global.u32 %r1, [%rd0+64];")
        x = np.zeros(16, np.uint32)
        with pytest.raises(OutOfBounds):
            module.launch("k", 1, 1, [x, x])
        assert not x.any()

    def test_scratch_that_is_written_first_is_read(self) -> None:
        module = simple("mad.wide.u32 %rd2, %r0, 4, %rd0; st.global.u32 [%rd2], %r0; ld.global.u32 %r1, [%rd2];")
        x = np.zeros(32, np.uint32)
        module.launch("k", 1, 32, [Scratch(x), Scratch(x)])
        np.testing.assert_array_equal(x, np.arange(32))


class TestMoves:
    def test_packing_and_unpacking(self) -> None:
        x = RANDOM.integers(0, 1 << 63, 64).astype(np.uint64)
        out = execute(
            "mov.b64 {%lo, %hi}, %x; mov.b64 {%a, _, _, %b}, %x; mov.b32 %w, {%b, %a}; mov.b64 %y, {%hi, %lo};",
            {"x": ("b64", x)},
            {"lo": "u32", "hi": "u32", "a": "u16", "b": "u16", "w": "u32", "y": "u64"},
        )
        parts = x.view(np.uint16).reshape(-1, 4)
        np.testing.assert_array_equal(out["lo"], x.view(np.uint32)[::2])
        np.testing.assert_array_equal(out["hi"], x.view(np.uint32)[1::2])
        np.testing.assert_array_equal(out["a"], parts[:, 0])
        np.testing.assert_array_equal(out["b"], parts[:, 3])
        np.testing.assert_array_equal(out["w"], parts[:, [3, 0]].copy().view(np.uint32)[:, 0])
        np.testing.assert_array_equal(out["y"], x.view(np.uint32).reshape(-1, 2)[:, ::-1].copy().view(np.uint64)[:, 0])

    def test_bytes_of_a_word(self) -> None:
        x = RANDOM.integers(0, 1 << 32, 32).astype(np.uint32)
        text = ".reg .b8 %c<4>; mov.b32 {%c0, %c1, %c2, %c3}, %x; mov.b32 %y, {%c3, %c2, %c1, %c0};"
        out = execute(text, {"x": ("b32", x)}, {"y": "u32"})
        np.testing.assert_array_equal(out["y"], x.byteswap())

    def test_immediates(self) -> None:
        out = execute(
            "mov.f32 %a, 0f7FC00001; mov.f64 %b, 0d7FF8000000000001; mov.f32 %c, 1.5; mov.u32 %d, -2; "
            "mov.s64 %e, 0xFFFFFFFFFFFFFFFF;"
            "mov.b16 %f, 0x8001; mov.pred %g, 1; mov.b32 %h, WARP_SZ; mov.f32 %i, 3;",
            {"z": ("u32", np.zeros(32, np.uint32))},
            {
                "a": "u32",
                "b": "u64",
                "c": "f32",
                "d": "u32",
                "e": "s64",
                "f": "u16",
                "g": "pred",
                "h": "u32",
                "i": "f32",
            },
        )
        found = [out[name][7].item() for name in "abcdefghi"]
        assert found == [0x7FC00001, 0x7FF8000000000001, 1.5, 2**32 - 2, -1, 0x8001, True, 32, 3.0]

    def test_a_bfloat16_immediate(self) -> None:
        out = execute("mov.b16 %a, 0x3FC0;", {"z": ("u32", np.zeros(32, np.uint32))}, {"a": "u16"})
        assert out["a"].view(ml_dtypes.bfloat16)[0] == 1.5

    def test_address_spaces(self) -> None:
        """An address made generic is in its space and in no other, and comes back the same."""
        text = """.shared .align 4 .b8 s[64]; .local .align 4 .b8 l[64];
            mov.u64 %rd0, s; cvta.shared.u64 %rd1, %rd0; cvta.to.shared.u64 %rd2, %rd1; sub.u64 %back, %rd2, %rd0;
            isspacep.shared %a, %rd1; isspacep.local %b, %rd1; isspacep.global %c, %rd1;
            mov.u64 %rd3, l; cvta.local.u64 %rd4, %rd3; isspacep.local %d, %rd4; isspacep.shared %e, %rd4;
            isspacep.global %f, %at0;"""
        kinds = {"back": "u64", **dict.fromkeys("abcdef", "pred")}
        out = execute(text, {"z": ("u32", np.zeros(32, np.uint32))}, kinds, ".reg .b64 %rd<6>;")
        assert [out[name][0].item() for name in ("back", *"abcdef")] == [0, True, False, False, True, False, True]

    def test_what_is_no_register(self) -> None:
        for text, message in (
            ("mov.u32 %d, %tid;", "%tid is moved by mov.v4.u32"),
            ("add.u32 %d, %z, %tid;", "%tid has components .x, .y and .z"),
            ("mov.u32 %d, %nothing;", "'%nothing' is not declared"),
            ("mov.b64 %d, %z;", "register %z has 32 bits, expected at least 64 for .b64"),
            ("mov.pred %d, %z;", "register %z is .b32, expected .pred"),
            ("add.u32 5, %z, %z;", "the result of add must be a register"),
            (
                "add.u32 %d, %z, %clock;",
                "the emulator does not know a clock as an operand of add; only mov reads clocks",
            ),
        ):
            with pytest.raises(PTXError) as caught:
                execute(text, {"z": ("u32", np.zeros(32, np.uint32))}, {"d": "u32"})
            assert message in str(caught.value), text


class TestSpecialRegisters:
    def test_lanes_and_their_masks(self) -> None:
        names = ("laneid", "warpid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge")
        text = "".join(f"mov.u32 %{name}_, %{name};" for name in names)
        out = execute(text, {"z": ("u32", np.zeros(96, np.uint32))}, {f"{name}_": "u32" for name in names}, block=96)
        for t in range(96):
            lane = t % 32
            expected = (
                lane,
                t // 32,
                1 << lane,
                (1 << lane) - 1,
                (2 << lane) - 1,
                2**32 - (2 << lane),
                2**32 - (1 << lane),
            )
            assert tuple(int(out[f"{name}_"][t]) for name in names) == expected

    def test_a_cluster_of_one(self) -> None:
        names = (
            "cluster_ctaid.x",
            "cluster_nctaid.y",
            "cluster_ctarank",
            "cluster_nctarank",
            "nclusterid.x",
            "clusterid.x",
        )
        outputs = {f"o{i}": "u32" for i in range(len(names))}
        text = "".join(f"mov.u32 %o{i}, %{name};" for i, name in enumerate(names))
        out = execute(text, {"z": ("u32", np.zeros(96, np.uint32))}, outputs, block=32)
        assert [out[name].tolist()[::32] for name in outputs] == [
            [0] * 3,
            [1] * 3,
            [0] * 3,
            [1] * 3,
            [3] * 3,
            [0, 1, 2],
        ]

    def test_clocks_count_the_warp_s_instructions(self) -> None:
        """Between the two readings are the first mov itself and two more."""
        text = "mov.u64 %a, %clock64; mov.u32 %x, 1; mov.u32 %x, 2; mov.u64 %b, %clock64;"
        text += "mov.u32 %c, %clock; mov.u32 %d, %clock_hi;"
        out = execute(
            text, {"z": ("u32", np.zeros(64, np.uint32))}, {"a": "u64", "b": "u64", "c": "u32", "d": "u32", "x": "u32"}
        )
        assert set((out["b"] - out["a"]).tolist()) == {3}
        assert set((out["c"] - out["b"]).tolist()) == {1} and not out["d"].any()


def test_the_harness_itself() -> None:
    """A guard keeps inactive threads out; outputs are 0 there."""
    x = np.arange(64, dtype=np.int32)
    active = x % 3 == 0
    out: dict[str, Any] = execute("add.s32 %d, %a, 1;", {"a": ("s32", x)}, {"d": "s32"}, active=active)
    np.testing.assert_array_equal(out["d"], np.where(active, x + 1, 0))
    ptx = kernel("mov.u32 %d, %ctaid.x;", {}, {"d": "u32"})
    d = np.zeros(64, np.uint32)
    run(ptx, [d], grid=2)
    np.testing.assert_array_equal(d, np.arange(64) // 32)


def test_a_view_keeps_the_alignment_it_has_in_its_array() -> None:
    """x[1:] begins 4 bytes into x: accesses of 8 bytes to its beginning are misaligned, as they would be on the device."""
    module = simple("ld.global.u64 %rd3, [%rd0]; st.global.u64 [%rd1], %rd3;")
    x = np.arange(8, dtype=np.uint32)
    y = np.zeros(2, np.uint32)
    module.launch("k", 1, 1, [x[2:], y])
    assert y.tolist() == [2, 3]
    with pytest.raises(Misaligned) as caught:
        module.launch("k", 1, 1, [x[1:], y])
    assert caught.value.where.address == "0x1000000104: byte 0 of 'argument 0' (28 bytes)"


@pytest.mark.parametrize("offset", [-4, 28])
def test_what_is_beside_a_view_is_out_of_bounds(offset: int) -> None:
    module = simple(f"ld.global.u32 %r1, [%rd0+{offset}]; st.global.u32 [%rd1], %r1;")
    x, y = np.arange(16, dtype=np.uint32), np.zeros(1, np.uint32)
    with pytest.raises(OutOfBounds):
        module.launch("k", 1, 1, [x[3:10], y])
    inside = simple("ld.global.u32 %r1, [%rd0+24]; st.global.u32 [%rd1], %r1;")
    inside.launch("k", 1, 1, [x[3:10], y])
    assert y[0] == 9


class TestMemoryOfOne:
    """Loops over shared memory of which each thread has a part of its own."""

    LOOP = """
        .shared .align 8 .b8 room[1024]; mov.u32 %r1, room; mad.lo.u32 %r2, %r0, 4, %r1; mov.u32 %r3, 0; st.shared.u32 [%r2], 0;
        {before}
    L:  ld.shared.u32 %r4, [%r2]; add.u32 %r4, %r4, %r3; st.shared.u32 [%r2], %r4;
        add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 20; @%p0 bra L;
        {after}
        mad.wide.u32 %rd2, %r0, 4, %rd1; st.global.u32 [%rd2], %r4;"""

    def launch(self, before: str, after: str, checks: Checks | None = None) -> np.ndarray:
        y = np.zeros(64, np.uint32)
        simple(self.LOOP.format(before=before, after=after)).launch("k", 1, 64, [y, y], checks=checks)
        return y

    def test_nobody_else_looks(self) -> None:
        assert set(self.launch("", "").tolist()) == {190}

    def test_another_looks_afterwards(self) -> None:
        with pytest.raises(Race):
            self.launch("", "xor.b32 %r5, %r2, 4; ld.shared.u32 %r4, [%r5];")

    def test_another_has_looked_before(self) -> None:
        with pytest.raises(Race):
            self.launch("bar.sync 0; xor.b32 %r5, %r2, 4; ld.shared.u32 %r4, [%r5];", "")

    def test_another_has_looked_at_more_than_its_own(self) -> None:
        """Reads of eight bytes every four: each thread has read its neighbour's, from the address at which it writes."""
        with pytest.raises(Race):
            self.launch(
                "setp.eq.u32 %p1, %r0, 63; st.shared.u32 [room+256], 0; bar.sync 0; ld.shared.u64 %rd5, [%r2]; ",
                "",
                Checks(alignment=False),
            )
