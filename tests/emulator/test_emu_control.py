"""Control flow: who runs when, what comes of threads that part, and that calls return to where they came from.

Expected results are Python loops over the threads; expected counts are derived in comments.
"""

from __future__ import annotations

import numpy as np
import pytest

from weft.emulator import LaunchError, Module, PTXError, Undefined
from weft.emulator.machine.program import weak_order

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def entry(body: str, before: str = "", parameters: str = ".param .u64 out") -> Module:
    """A kernel ``k``: %tid in %r0, the address of out[tid] in %rd0."""
    return Module(
        f"{HEAD}{before}\n.visible .entry k({parameters})\n{{\n"
        ".reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<10>;\n"
        "mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd0, %rd1, %rd2;\n"
        f"{body}\n}}\n"
    )


def run(module: Module, threads: int = 64, *args: object) -> np.ndarray:
    out = np.full(threads, 0xDEADBEEF, np.uint32)
    module.launch("k", 1, threads, [out, *args])
    return out


class TestDivergence:
    def test_collatz(self) -> None:
        """Each thread loops a different number of times, with a branch inside the loop."""
        module = entry("""
            mov.u32 %r1, 0;
            add.u32 %r2, %r0, 1;
        LOOP:
            setp.eq.u32 %p0, %r2, 1;
            @%p0 bra DONE;
            and.b32 %r3, %r2, 1;
            setp.eq.u32 %p1, %r3, 0;
            @%p1 bra EVEN;
            mad.lo.u32 %r2, %r2, 3, 1;
            bra NEXT;
        EVEN:
            shr.u32 %r2, %r2, 1;
        NEXT:
            add.u32 %r1, %r1, 1;
            bra LOOP;
        DONE:
            st.global.u32 [%rd0], %r1;
            ret;""")

        def steps(n: int) -> int:
            count = 0
            while n != 1:
                n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
            return count

        np.testing.assert_array_equal(run(module), [steps(n + 1) for n in range(64)])

    def test_lanes_meet_again_after_an_if(self) -> None:
        """Half of each warp takes each side; the store after is one execution of 32 lanes a warp, not two of 16."""
        module = entry("""
            and.b32 %r1, %r0, 1;
            setp.eq.u32 %p0, %r1, 0;
            @%p0 bra EVEN;
            mov.u32 %r2, 7;
            bra JOIN;
        EVEN:
            mov.u32 %r2, 5;
        JOIN:
            st.global.u32 [%rd0], %r2;
            ret;""")
        out = np.zeros(64, np.uint32)
        profile = module.launch("k", 1, 64, [out])
        np.testing.assert_array_equal(out, [5, 7] * 32)
        store = next(row for row in profile.instructions if row.text.startswith("st.global"))
        assert (store["executions"], store["threads"]) == (2, 64)
        sides = [row for row in profile.instructions if row.text.startswith("mov.u32 %r2")]
        assert [(row["executions"], row["threads"]) for row in sides] == [(2, 32), (2, 32)]

    def test_lanes_that_leave_a_loop_wait_for_the_others_even_where_the_exit_stands_first(self) -> None:
        """Thread t loops t % 4 times; the exit precedes the body in the text. Behind the loop all lanes are together."""
        module = entry("""
            and.b32 %r1, %r0, 3;
            bra HEAD;
        EXIT:
            st.global.u32 [%rd0], %r2;
            ret;
        HEAD:
            mov.u32 %r2, 0;
        TEST:
            setp.ge.u32 %p0, %r2, %r1;
            @%p0 bra EXIT;
            add.u32 %r2, %r2, 1;
            bra TEST;""")
        out = np.zeros(32, np.uint32)
        profile = module.launch("k", 1, 32, [out])
        np.testing.assert_array_equal(out, np.arange(32) % 4)
        store = next(row for row in profile.instructions if row.text.startswith("st.global"))
        assert (store["executions"], store["threads"]) == (1, 32)
        # The body runs 3 times for the warp: with the lanes of t % 4 > 0, then > 1, then > 2.
        body = next(row for row in profile.instructions if row.text.startswith("add.u32 %r2"))
        assert (body["executions"], body["threads"]) == (3, 24 + 16 + 8)

    def test_a_guarded_exit_ends_only_those_it_names(self) -> None:
        module = entry("""
            setp.gt.u32 %p0, %r0, 9;
            @%p0 exit;
            st.global.u32 [%rd0], %r0;
            ret;""")
        expected = np.full(64, 0xDEADBEEF, np.uint32)
        expected[:10] = np.arange(10)
        np.testing.assert_array_equal(run(module), expected)

    def test_a_negated_guard(self) -> None:
        module = entry("""
            setp.gt.u32 %p0, %r0, 9;
            mov.u32 %r1, 1;
            @!%p0 mov.u32 %r1, 2;
            st.global.u32 [%rd0], %r1;
            ret;""")
        np.testing.assert_array_equal(run(module), np.where(np.arange(64) > 9, 1, 2))

    def test_blocks_that_are_no_whole_number_of_warps(self) -> None:
        module = entry("st.global.u32 [%rd0], %r0; ret;")
        out = np.zeros(45, np.uint32)
        profile = module.launch("k", 1, 45, [out])
        np.testing.assert_array_equal(out, np.arange(45))
        assert (profile.total("executions"), profile.total("threads")) == (2 * 6, 45 * 6)


class TestBranches:
    SWITCH = """
            and.b32 %r1, %r0, 3;
        TABLE: .branchtargets A, B, A, C;
            brx.idx %r1, TABLE;
        A:  mov.u32 %r2, 10; bra END;
        B:  mov.u32 %r2, 20; bra END;
        C:  mov.u32 %r2, 30;
        END: st.global.u32 [%rd0], %r2; ret;"""

    def test_a_switch(self) -> None:
        np.testing.assert_array_equal(run(entry(self.SWITCH)), [10, 20, 10, 30] * 16)

    def test_an_index_beyond_the_table(self) -> None:
        module = entry(self.SWITCH.replace("and.b32 %r1, %r0, 3", "mov.u32 %r1, %r0"))
        with pytest.raises(Undefined) as caught:
            run(module)
        assert str(caught.value) == (
            "undefined behaviour: index 4 into a table of 4 labels\n"
            "  kernel k\n"
            "  PTX line 12: brx.idx %r1, TABLE\n"
            "  block (0, 0, 0), thread (4, 0, 0)"
        )

    def test_a_label_that_is_not_there(self) -> None:
        with pytest.raises(PTXError) as caught:
            run(entry("bra NOWHERE; ret;"))
        assert str(caught.value) == "PTX line 9: 'NOWHERE' is not declared\n    bra NOWHERE; ret;"


class TestCalls:
    def test_parameters_and_results(self) -> None:
        twice = """
        .func (.param .b32 result) twice(.param .b32 x, .param .align 4 .b8 pair[8])
        {
            .reg .b32 %r<8>;
            ld.param.u32 %r0, [x];
            ld.param.v2.u32 {%r1, %r2}, [pair];
            mad.lo.u32 %r3, %r0, 2, %r1;
            add.u32 %r3, %r3, %r2;
            st.param.b32 [result], %r3;
            ret;
        }"""
        module = entry(
            """
            { .param .b32 a; .param .align 4 .b8 b[8]; .param .b32 r;
              st.param.b32 [a], %r0; st.param.b32 [b], 100; st.param.b32 [b+4], 1000;
              call (r), twice, (a, b);
              ld.param.b32 %r5, [r]; }
            st.global.u32 [%rd0], %r5;
            ret;""",
            twice,
        )
        np.testing.assert_array_equal(run(module), 2 * np.arange(64) + 1100)

    def test_registers_as_parameters(self) -> None:
        add = ".func (.reg .u32 r) plus(.reg .u32 x, .reg .u32 y) { add.u32 r, x, y; ret; }"
        module = entry("call (%r3), plus, (%r0, 5); st.global.u32 [%rd0], %r3; ret;", add)
        np.testing.assert_array_equal(run(module), np.arange(64) + 5)

    def test_threads_that_call_from_different_places_return_there(self) -> None:
        add = ".func (.reg .u32 r) plus(.reg .u32 x, .reg .u32 y) { add.u32 r, x, y; ret; }"
        module = entry(
            """
            and.b32 %r1, %r0, 1;
            setp.eq.u32 %p0, %r1, 0;
            @%p0 bra EVEN;
            call (%r3), plus, (%r0, 1000);
            add.u32 %r3, %r3, 1;
            bra JOIN;
        EVEN:
            call (%r3), plus, (%r0, 2000);
            add.u32 %r3, %r3, 2;
        JOIN:
            st.global.u32 [%rd0], %r3;
            ret;""",
            add,
        )
        t = np.arange(64)
        np.testing.assert_array_equal(run(module), np.where(t % 2 == 0, t + 2002, t + 1001))

    def test_recursion_to_a_depth_that_differs(self) -> None:
        """fib by double recursion, of thread % 8."""
        fib = """
        .func (.param .b32 r) fib(.param .b32 n)
        {
            .reg .b32 %r<10>; .reg .pred %p<2>;
            ld.param.u32 %r0, [n];
            setp.lt.u32 %p0, %r0, 2;
            @%p0 bra SMALL;
            sub.u32 %r1, %r0, 1;
            sub.u32 %r2, %r0, 2;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), fib, (a); ld.param.b32 %r3, [b]; }
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), fib, (a); ld.param.b32 %r4, [b]; }
            add.u32 %r5, %r3, %r4;
            st.param.b32 [r], %r5;
            ret;
        SMALL:
            st.param.b32 [r], %r0;
            ret;
        }"""
        module = entry(
            """
            and.b32 %r1, %r0, 7;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), fib, (a); ld.param.b32 %r3, [b]; }
            st.global.u32 [%rd0], %r3;
            ret;""",
            fib,
        )
        np.testing.assert_array_equal(run(module), [0, 1, 1, 2, 3, 5, 8, 13] * 8)

    def test_local_variables_of_recursive_functions_are_each_call_s_own(self) -> None:
        """sum(n) keeps n in local memory across the call."""
        function = """
        .func (.param .b32 r) sum(.param .b32 n)
        {
            .local .align 4 .b8 kept[4];
            .reg .b32 %r<10>; .reg .pred %p<2>; .reg .b64 %rd<4>;
            ld.param.u32 %r0, [n];
            mov.u64 %rd1, kept;
            st.local.u32 [%rd1], %r0;
            mov.u32 %r3, 0;
            setp.eq.u32 %p0, %r0, 0;
            @%p0 bra END;
            sub.u32 %r1, %r0, 1;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), sum, (a); ld.param.b32 %r3, [b]; }
        END:
            ld.local.u32 %r4, [kept];
            add.u32 %r3, %r3, %r4;
            st.param.b32 [r], %r3;
            ret;
        }"""
        module = entry(
            """
            and.b32 %r1, %r0, 7;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), sum, (a); ld.param.b32 %r3, [b]; }
            st.global.u32 [%rd0], %r3;
            ret;""",
            function,
        )
        np.testing.assert_array_equal(run(module), [n * (n + 1) // 2 for n in range(8)] * 8)

    def test_calls_without_end(self) -> None:
        module = entry("call f; ret;", ".func f() { call f; ret; }")
        with pytest.raises(Undefined) as caught:
            run(module)
        assert caught.value.message == "calls are more than 256 deep"

    INDIRECT = """
        .func (.reg .u32 r) plus(.reg .u32 x) { add.u32 r, x, 100; ret; }
        .func (.reg .u32 r) times(.reg .u32 x) { mul.lo.u32 r, x, 3; ret; }
        .global .u64 table[2] = {plus, times};"""

    def test_indirect_calls_through_a_table(self) -> None:
        module = entry(
            """
            and.b32 %r1, %r0, 1;
            mul.wide.u32 %rd3, %r1, 8;
            mov.u64 %rd4, table;
            add.s64 %rd5, %rd4, %rd3;
            ld.global.u64 %rd6, [%rd5];
        P: .callprototype (.reg .u32 _) _ (.reg .u32 _);
            call (%r3), %rd6, (%r0), P;
            st.global.u32 [%rd0], %r3;
            ret;""",
            self.INDIRECT,
        )
        t = np.arange(64)
        np.testing.assert_array_equal(run(module), np.where(t % 2 == 0, t + 100, t * 3))

    def test_a_call_of_what_is_no_function(self) -> None:
        module = entry(
            "P: .callprototype (.reg .u32 _) _ (.reg .u32 _); mov.u64 %rd6, 12; call (%r3), %rd6, (%r0), P; ret;",
            self.INDIRECT,
        )
        with pytest.raises(Undefined) as caught:
            run(module)
        assert caught.value.message == "a call of 0xc, which is no function's address"

    def test_a_function_without_a_body(self) -> None:
        with pytest.raises(PTXError) as caught:
            run(entry("call nothing; ret;", ".extern .func nothing();"))
        assert str(caught.value) == "PTX line 9: function 'nothing' has no body in this module\n    call nothing"

    def test_the_wrong_number_of_arguments(self) -> None:
        with pytest.raises(PTXError) as caught:
            run(entry("call (%r3), plus, (%r0, %r1); ret;", self.INDIRECT))
        assert str(caught.value) == (
            "PTX line 12: 'plus' has 1 parameters and 1 results, the call 2 and 1\n    call (%r3), plus, (%r0, %r1)"
        )


class TestSpinning:
    def test_a_lane_that_waits_for_a_later_place_of_the_program(self) -> None:
        """Thread 0 stores a flag behind the loop in which the others wait for it."""
        module = entry("""
            setp.eq.u32 %p0, %r0, 0;
            @%p0 bra SET;
        WAIT:
            ld.volatile.global.u32 %r1, [%rd1];
            setp.ne.u32 %p1, %r1, 1;
            @%p1 bra WAIT;
            st.global.u32 [%rd0], %r1;
            ret;
        SET:
            st.volatile.global.u32 [%rd1], 1;
            ret;""")
        np.testing.assert_array_equal(run(module), np.ones(64))

    def test_a_lock_that_every_lane_of_every_block_takes(self) -> None:
        """The lanes of a warp compete for it too, which needs those who have it to go on while others spin (since Volta)."""
        module = entry("""
        TAKE:
            atom.global.acquire.gpu.cas.b32 %r1, [%rd1], 0, 1;
            setp.ne.u32 %p0, %r1, 0;
            @%p0 bra TAKE;
            ld.global.u32 %r2, [%rd1+4];
            add.u32 %r2, %r2, 1;
            st.global.u32 [%rd1+4], %r2;
            atom.global.release.gpu.exch.b32 %r3, [%rd1], 0;
            ret;""")
        out = np.zeros(2, np.uint32)
        module.launch("k", 3, 40, [out])
        assert out.tolist() == [0, 120]

    def test_a_flag_that_nobody_sets(self) -> None:
        module = entry("""
        WAIT:
            ld.volatile.global.u32 %r1, [%rd1];
            setp.ne.u32 %p1, %r1, 1;
            @%p1 bra WAIT;
            ret;""")
        with pytest.raises(RuntimeError) as caught:
            run(module)
        assert str(caught.value) == (
            "barrier: 64 threads repeat a loop that waits for another thread, and no thread changes anything\n"
            "  kernel k\n"
            "  PTX line 11: ld.volatile.global.u32 %r1, [%rd1]\n"
            "  block (0, 0, 0), thread (0, 0, 0)"
        )


class TestOrder:
    def test_a_diamond_and_a_loop_in_a_loop(self) -> None:
        #  0 -> 1 (outer head) -> 2 (inner head) -> 3 -> 2, 2 -> 4 -> 5|6 -> 7 -> 1, 1 -> 8
        graph = {0: [1], 1: [8, 2], 2: [4, 3], 3: [2], 4: [5, 6], 5: [7], 6: [7], 7: [1], 8: []}
        order: list[int] = []
        weak_order(0, graph.__getitem__, order.append)
        place = {node: i for i, node in enumerate(order)}
        assert sorted(order) == list(range(9))
        assert order[0] == 0 and order[1] == 1 and order[-1] == 8
        assert place[3] == place[2] + 1, "the inner loop is contiguous"
        assert place[7] > max(place[5], place[6]) > place[4] > place[3]

    def test_every_node_once_and_edges_forwards_but_into_heads_of_loops(self) -> None:
        """Random graphs: an edge backwards leads to a node from which its source can be reached."""
        random = np.random.default_rng(0)
        for _ in range(200):
            n = int(random.integers(1, 12))
            graph = {i: sorted({int(j) for j in random.integers(0, n, random.integers(0, 3))}) for i in range(n)}
            order: list[int] = []
            weak_order(0, graph.__getitem__, order.append)
            reach: dict[int, set[int]] = {i: {i} for i in graph}
            for _ in graph:
                reach = {i: {i}.union(*(reach[j] for j in graph[i])) for i in graph}
            assert sorted(order) == sorted(reach[0])
            place = {node: i for i, node in enumerate(order)}
            for i in order:
                for j in graph[i]:
                    assert place[j] > place[i] or i in reach[j]


class TestLaunches:
    MODULE = entry("st.global.u32 [%rd0], %r0; ret;")

    @pytest.mark.parametrize(
        ("grid", "block", "args", "message"),
        [
            (1, 0, [np.zeros(4)], "block is 0, expected numbers from 1 on"),
            ((1, 2, 3, 4), 1, [np.zeros(4)], "grid is (1, 2, 3, 4), expected one to three integers"),
            (1, 1025, [np.zeros(4)], "a block of (1025, 1, 1) has 1025 threads; a block has at most 1024, 64 in z"),
            (1, (1, 1, 65), [np.zeros(4)], "a block of (1, 1, 65) has 65 threads; a block has at most 1024, 64 in z"),
            ((1, 65536), 1, [np.zeros(4)], "a grid of (1, 65536, 1) is larger than the largest, (2147483647, 65535, 65535)"),
            (1, 1, [], "k() takes 1 argument, got 0; its parameters: out .u64"),
            (1, 1, ["x"], "argument 0 is of type str; a kernel takes NumPy arrays, numbers, structures and bytes"),
            (1, 1, [b"abc"], "argument 0 has 3 bytes, but parameter out has 8"),
            (1, 1, [np.int32(4)], "argument 0 has 4 bytes, but parameter out has 8"),
            (1, 1, [1 << 64], "argument 0 is 18446744073709551616, which does not fit the 8 bytes of parameter out"),
            (1, 1, [1.5], "argument 0 is a float, but parameter out is .u64; pass a NumPy number of its type"),
            (1, 1, [np.array([None])], "argument 0 is an array of Python objects, which have no bytes a kernel could read"),
        ],
    )  # fmt: skip
    def test_what_cannot_be(self, grid: object, block: object, args: list[object], message: str) -> None:
        with pytest.raises(LaunchError) as caught:
            self.MODULE.launch("k", grid, block, args)  # pyright: ignore[reportArgumentType]
        assert str(caught.value) == message

    def test_a_kernel_that_is_not_there(self) -> None:
        with pytest.raises(LaunchError) as caught:
            self.MODULE.launch("kk", 1, 1, [np.zeros(4)])
        assert str(caught.value) == "the module has no kernel 'kk'; it has k"

    def test_an_array_where_a_number_is_expected(self) -> None:
        module = Module(f"{HEAD}.entry k(.param .u32 n) {{ ret; }}")
        with pytest.raises(LaunchError) as caught:
            module.launch("k", 1, 1, [np.zeros(4)])
        assert str(caught.value) == "argument 0 is an array, but parameter n is no pointer: it has 4 bytes"

    def test_required_and_largest_blocks(self) -> None:
        module = Module(f"{HEAD}.entry k() .reqntid 64, 2 {{ ret; }}\n.entry m() .maxntid 64 {{ ret; }}")
        module.launch("k", 1, (64, 2))
        with pytest.raises(LaunchError) as caught:
            module.launch("k", 1, 64)
        assert str(caught.value) == "k requires blocks of (64, 2, 1) threads (.reqntid), got (64, 1, 1)"
        with pytest.raises(LaunchError) as caught:
            module.launch("m", 1, 65)
        assert str(caught.value) == "m allows blocks of at most 64 threads (.maxntid), got 65"

    def test_too_much_shared_memory(self) -> None:
        module = Module(f"{HEAD}.extern .shared .b8 s[];\n.entry k() {{ .reg .b32 %r; mov.u32 %r, s; ret; }}")
        with pytest.raises(LaunchError) as caught:
            module.launch("k", 1, 1, shared=300_000)
        assert str(caught.value) == ("k needs 300000 bytes of shared memory a block, more than the 232448 there are")

    def test_an_instruction_nobody_knows(self) -> None:
        with pytest.raises(PTXError) as caught:
            run(entry("frobnicate.u32 %r1, %r0; ret;"))
        assert str(caught.value) == (
            "PTX line 9: the emulator does not know the instruction 'frobnicate.u32'\n    frobnicate.u32 %r1, %r0"
        )

    def test_a_modifier_nobody_knows(self) -> None:
        with pytest.raises(PTXError) as caught:
            run(entry("ld.global.maybe.u32 %r1, [%rd0]; ret;"))
        assert (
            str(caught.value)
            == "PTX line 9: the emulator does not know '.maybe' of ld\n    ld.global.maybe.u32 %r1, [%rd0]"
        )

    def test_views_of_one_array_are_one_allocation(self) -> None:
        """out is written through one view and read through another."""
        module = entry(
            "ld.param.u64 %rd3, [in]; add.s64 %rd4, %rd3, %rd2; ld.global.u32 %r1, [%rd4]; st.global.u32 [%rd0], %r1; ret;",
            parameters=".param .u64 out, .param .u64 in",
        )
        base = np.arange(128, dtype=np.uint32)
        module.launch("k", 1, 32, [base[64:96], base[16:]])
        np.testing.assert_array_equal(base[64:96], np.arange(16, 48))
        np.testing.assert_array_equal(base[:64], np.arange(64))

    def test_read_only_arrays_are_never_written(self) -> None:
        out = np.zeros(32, np.uint32)
        out.flags.writeable = False
        with pytest.raises(LaunchError) as caught:
            self.MODULE.launch("k", 1, 32, [out])
        assert str(caught.value) == "argument 0 is a read-only array, and k writes to it"
        assert not out.any()

    def test_more_blocks_than_are_executed_at_once(self) -> None:
        module = entry(
            "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd4, %r3, 4;"
            "add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r3; ret;"
        )
        out = np.zeros(50_000, np.uint32)
        module.launch("k", 50, 1000, [out])
        np.testing.assert_array_equal(out, np.arange(50_000))

    def test_grids_and_blocks_of_three_dimensions(self) -> None:
        names = ("%tid", "%ctaid", "%ntid", "%nctaid")
        loads = "\n".join(
            f"mov.u32 %r{10 + 3 * i + j}, {n}.{a};" for i, n in enumerate(names) for j, a in enumerate("xyz")
        )
        module = entry(f"""
            {loads}
            mad.lo.u32 %r1, %r15, %r20, %r14; mad.lo.u32 %r1, %r1, %r19, %r13;          // block = (z Y + y) X + x
            mad.lo.u32 %r2, %r12, %r17, %r11; mad.lo.u32 %r2, %r2, %r16, %r10;          // thread, the same way
            mul.lo.u32 %r3, %r16, %r17; mul.lo.u32 %r3, %r3, %r18; mad.lo.u32 %r4, %r1, %r3, %r2;
            mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r4; ret;""")
        out = np.zeros(3 * 4 * 5 * 2 * 6 * 7, np.uint32)
        module.launch("k", (3, 4, 5), (2, 6, 7), [out])
        np.testing.assert_array_equal(out, np.arange(out.size))
