"""Kernels in JAX programs, against NumPy: values, transformations, memory, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft import triton

pytestmark = [pytest.mark.jax, pytest.mark.jit]
jax: Any = pytest.importorskip("jax", reason="needs JAX: pip install 'weft[jax]'")

from weft.jax import call, handler, triton_call  # noqa: E402

jnp: Any = jax.numpy


@weft.jit
def add(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@weft.jit
def moments(x: Any, total: Any, squares: Any, count: Any, scale: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < count, other=0.0) * scale
    tl.store(total, tl.sum(values, axis=0))
    tl.store(squares + offsets, values * values, mask=offsets < count)


@weft.jit
def increment(x: Any, by: tl.constexpr, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) + by)


@weft.jit
def accumulate(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(out + offsets, tl.load(x + offsets))


@weft.jit
def numbers(out: Any, start: Any, BLOCK: tl.constexpr) -> None:
    tl.store(out + tl.arange(0, BLOCK), start + tl.arange(0, BLOCK))


@weft.jit
def sine(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.sin(tl.load(x + offsets)))


@weft.jit
def sine_gradient(x: Any, g: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.cos(tl.load(x + offsets)) * tl.load(g + offsets))


def added(x: Any, y: Any) -> Any:
    return call(
        add,
        x,
        y,
        n=x.size,
        out_shape=x,
        grid=lambda meta: (weft.cdiv(meta["n"], meta["BLOCK"]),),
        BLOCK=64,
        num_warps=2,
    )


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int32, ml_dtypes.float8_e5m2]
)
def test_values(dtype: Any, jitted: bool) -> None:
    x, y = ((array(1000, seed=i) * 5).astype(dtype) for i in (1, 2))
    found = (jax.jit(added) if jitted else added)(jnp.asarray(x), jnp.asarray(y))
    assert found.dtype == dtype
    assert found.shape == (1000,)
    expected = (x.astype(np.float32) + y.astype(np.float32)).astype(dtype) if x.dtype.kind not in "iu" else x + y
    np.testing.assert_array_equal(np.asarray(found).astype(np.float32), expected.astype(np.float32))


def test_numpy_arrays_and_other_shapes() -> None:
    x, y = array(3, 7, 5), array(3, 7, 5, seed=1)
    found = added(x, y)
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(found, x + y)


@weft.jit
def losses(logits: Any, target: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(logits + tl.load(target + offsets)))


def test_a_parameter_may_have_the_name_of_a_keyword_of_compile() -> None:
    target = jnp.array([3, 1, 2, 0], jnp.int32)
    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    assert call(losses, jnp.arange(8.0), target, out_shape=shape, grid=1, BLOCK=4).tolist() == [3, 1, 2, 0]


def test_several_outputs_as_a_tree() -> None:
    x = array(50)

    @jax.jit
    def run(x: Any) -> Any:
        shape = (jax.ShapeDtypeStruct((), jnp.float32), {"squares": x})
        return call(moments, x, count=50, scale=2.0, out_shape=shape, grid=1, BLOCK=64)

    total, rest = run(jnp.asarray(x))
    assert total.shape == ()
    np.testing.assert_allclose(total, (2 * x).sum(), rtol=1e-5)
    np.testing.assert_array_equal(rest["squares"], (2 * x) ** 2)


def test_no_inputs_and_constants() -> None:
    shape = jax.ShapeDtypeStruct((16,), jnp.int32)
    for start in (5, 16, 1):
        np.testing.assert_array_equal(
            call(numbers, start=start, out_shape=shape, grid=1, BLOCK=16), start + np.arange(16)
        )


def test_an_array_without_dimensions_is_a_pointer() -> None:
    np.testing.assert_array_equal(added(jnp.float32(2.5), jnp.float32(0.5)), np.float32(3))


def test_an_empty_grid_and_empty_arrays() -> None:
    assert added(jnp.zeros((0,), jnp.float32), jnp.zeros((0,), jnp.float32)).shape == (0,)


def test_equal_constants_of_other_types_are_other_calls() -> None:
    def filled(value: Any) -> Any:
        x = jnp.zeros(16, jnp.float32)
        return call(increment, x, value, out_shape=x, grid=1, input_output_aliases={0: 0}, BLOCK=16)

    assert np.signbit(np.asarray(filled(-0.0) * 0)).sum() == 0
    sites = [handler.number_of(site(value)) for value in (1, 1.0, True, 0.0, -0.0)]
    assert len(set(sites)) == 5
    assert handler.number_of(site(1)) == sites[0]
    assert handler.number_of(site([1])) != handler.number_of(site([1]))  # what cannot be hashed is never shared


def site(value: Any) -> handler.Site:
    return handler.Site(increment, ("x",), (value,), (1, 1, 1), {}, (), (), ())


# ---- memory ---------------------------------------------------------------------------------------------------------


Addresses: TypeAlias = tuple[list[int], list[int], list[bool]]
"""Of a launch: addresses of inputs and of outputs, and which inputs are writable."""


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[Addresses]:
    """Those of each launch."""
    seen: list[Addresses] = []
    launch = handler.Site.launch

    def watched(self: handler.Site, inputs: Any, outputs: Any) -> None:
        places = [[a.ctypes.data for a in arrays] for arrays in (inputs, outputs)]
        seen.append((places[0], places[1], [a.flags.writeable for a in inputs]))
        launch(self, inputs, outputs)

    monkeypatch.setattr(handler.Site, "launch", watched)
    return seen


def test_the_kernel_works_on_xlas_memory(addresses: list[Addresses]) -> None:
    x, y = jnp.asarray(array(1000)), jnp.asarray(array(1000, seed=1))
    found = jax.jit(added)(x, y)
    starts = [a.unsafe_buffer_pointer() for a in (x, y, found)]
    assert addresses == [(starts[:2], starts[2:], [False, False])]


def incremented(x: Any) -> Any:
    return call(increment, x, 3, out_shape=x, grid=1, input_output_aliases={0: 0}, BLOCK=16)


def test_an_aliased_output_is_written_over_its_input() -> None:
    x = jnp.arange(16.0)
    np.testing.assert_array_equal(jax.jit(incremented)(x), np.arange(16) + 3)
    np.testing.assert_array_equal(x, np.arange(16))  # JAX has copied it, for it is used
    before = x.unsafe_buffer_pointer()
    found = jax.jit(incremented, donate_argnums=0)(x)
    assert found.unsafe_buffer_pointer() == before
    np.testing.assert_array_equal(found, np.arange(16) + 3)


def test_zeroed_outputs() -> None:
    x = array(64)
    for _ in range(3):
        found = call(
            accumulate, x, out_shape=jax.ShapeDtypeStruct((64,), jnp.float32), grid=4, zeroed_outputs=[0], BLOCK=64
        )
        np.testing.assert_allclose(found, 4 * x, rtol=1e-6)


# ---- transformations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0)])
def test_vmap(axes: tuple[int | None, int | None]) -> None:
    given = [array(*{0: (4, 100), 1: (100, 4), None: (100,)}[axis], seed=i) for i, axis in enumerate(axes)]
    rows = [a if axis is None else np.moveaxis(a, axis, 0) for a, axis in zip(given, axes, strict=True)]
    expected = np.broadcast_to(rows[0], (4, 100)) + rows[1]
    mapped = jax.vmap(added, in_axes=axes)
    for run in (mapped, jax.jit(mapped)):
        np.testing.assert_array_equal(run(*map(jnp.asarray, given)), expected)


def test_vmap_makes_no_copies(addresses: list[Addresses]) -> None:
    x, y = jnp.asarray(array(4, 100)), jnp.asarray(array(100, seed=1))
    found = jax.jit(jax.vmap(added, in_axes=(0, None)))(x, y)
    starts = [a.unsafe_buffer_pointer() for a in (x, y, found)]
    assert [(given[0] - starts[0], given[1] - starts[1], made[0] - starts[2]) for given, made, _ in addresses] == [
        (400 * i, 0, 400 * i) for i in range(4)
    ]


def test_nested_vmap() -> None:
    x, y = array(3, 50), array(4, 50, seed=1)
    pairs = jax.vmap(jax.vmap(added, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(pairs(x, y), x[:, None] + y[None])


def test_vmap_of_aliases_and_zeroed_outputs() -> None:
    def summed(row: Any) -> Any:
        shape = jax.ShapeDtypeStruct((16,), jnp.float32)
        return call(accumulate, row, out_shape=shape, grid=2, zeroed_outputs=(0,), BLOCK=16)

    x = array(3, 16)
    np.testing.assert_array_equal(jax.jit(jax.vmap(incremented))(x), x + 3)
    np.testing.assert_allclose(jax.vmap(summed)(x), 2 * x, rtol=1e-6)


@jax.custom_vjp
def differentiable(x: Any) -> Any:
    return call(sine, x, out_shape=x, grid=1, BLOCK=32)


def _forward(x: Any) -> Any:
    return differentiable(x), x


def _backward(x: Any, g: Any) -> Any:
    return (call(sine_gradient, x, g, out_shape=x, grid=1, BLOCK=32),)


differentiable.defvjp(_forward, _backward)


def test_gradients_by_a_rule() -> None:
    def total(x: Any) -> Any:
        return (differentiable(x) * 2).sum()

    x = array(32)
    np.testing.assert_allclose(jax.grad(total)(x), 2 * np.cos(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(total)))(x[None])[0], 2 * np.cos(x), rtol=1e-5, atol=1e-6)


def test_inside_loops() -> None:
    def step(_: Any, value: Any) -> Any:
        return incremented(value)

    def run(x: Any) -> Any:
        return jax.lax.fori_loop(0, 5, step, x)

    x = array(16)
    np.testing.assert_allclose(jax.jit(run)(x), x + 15, rtol=1e-6)


def test_triton_call() -> None:
    x, y = array(100), array(100, seed=1)
    for word in ("out_shape", "out_type"):
        found = triton_call(
            x, y, n=100, kernel=add, grid=2, BLOCK=64, name="add", debug=False, **{word: jnp.zeros(100)}
        )
        np.testing.assert_array_equal(found, x + y)
    with pytest.raises(TypeError) as caught:
        triton_call(x, y, n=100, kernel=add, grid=2, BLOCK=64)
    assert str(caught.value) == "triton_call needs out_shape (or out_type): the shapes and dtypes of the results"


# ---- errors ---------------------------------------------------------------------------------------------------------

X = np.zeros(16, np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no kernel": (
        lambda: call(len, X, out_shape=X, grid=1),
        TypeError,
        "weft.jax.call takes a kernel first, a function decorated with weft.jit, found builtin_function_or_method",
    ),
    "too many arguments": (
        lambda: call(sine, X, X, 16, 5, out_shape=X, grid=1),
        TypeError,
        "kernel 'sine' has 3 parameters, found 4 arguments",
    ),
    "an unknown name": (
        lambda: call(sine, X, out_shape=X, grid=1, BLOCK=16, WIDTH=3),
        TypeError,
        "kernel 'sine' has no parameter 'WIDTH'; its parameters are x, out, BLOCK",
    ),
    "an argument twice": (
        lambda: call(sine, X, out_shape=X, grid=1, BLOCK=16, x=X),
        TypeError,
        "kernel 'sine' got multiple values for argument 'x'",
    ),
    "no constexpr": (
        lambda: call(sine, X, out_shape=X, grid=1),
        TypeError,
        "kernel 'sine': the constexpr parameter 'BLOCK' has no value",
    ),
    "too many outputs": (
        lambda: call(sine, X, out_shape=[X, X], grid=1, BLOCK=16),
        TypeError,
        "kernel 'sine': out_shape has 2 outputs that are not aliased, and the parameters without an argument are 1: out",
    ),
    "too few outputs": (
        lambda: call(sine, X, X, out_shape=X, grid=1, BLOCK=16),
        TypeError,
        "kernel 'sine': out_shape has 1 outputs that are not aliased, and the parameters without an argument are 0: none",
    ),
    "an alias of other arrays": (
        lambda: call(sine, X, X, out_shape=X[:8], grid=1, input_output_aliases={1: 0}, BLOCK=16),
        ValueError,
        "kernel 'sine': input 1 is float32[16] and cannot be output 0, which is float32[8]",
    ),
    "an alias of nothing": (
        lambda: call(sine, X, X, out_shape=X, grid=1, input_output_aliases={2: 0}, BLOCK=16),
        ValueError,
        "kernel 'sine': input_output_aliases has 2: 0, but there are 2 inputs and 1 outputs",
    ),
    "an alias twice": (
        lambda: call(sine, X, X, out_shape=X, grid=1, input_output_aliases={0: 0, 1: 0}, BLOCK=16),
        ValueError,
        "kernel 'sine': input_output_aliases gives an output to two inputs: {0: 0, 1: 0}",
    ),
    "zeroing nothing": (
        lambda: call(sine, X, out_shape=X, grid=1, zeroed_outputs=[1], BLOCK=16),
        ValueError,
        "kernel 'sine': zeroed_outputs has 1, but there are 1 outputs",
    ),
    "a bad grid": (
        lambda: call(sine, X, out_shape=X, grid=(1, 2, 3, 4), BLOCK=16),
        ValueError,
        "kernel 'sine': a grid has 1 to 3 dimensions, found 4: (1, 2, 3, 4)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    run, kind, message = REFUSED[name]
    with pytest.raises(kind) as caught:
        run()
    assert str(caught.value) == message


@weft.jit
def wrong(x: Any, out: Any) -> None:
    tl.store(out, tl.no_such_function(x))  # pyright: ignore


def test_errors_of_the_kernels_text_are_raised_while_tracing() -> None:
    @jax.jit
    def run(x: Any) -> Any:
        return call(wrong, x, out_shape=x, grid=1)

    with pytest.raises(weft.CompilationError, match="no_such_function"):
        run.lower(X)


@weft.jit(checked=True)
def beyond(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets + 1))


def test_errors_of_the_launch_reach_the_user() -> None:
    @jax.jit
    def run(x: Any) -> Any:
        return call(beyond, x, out_shape=x, grid=1, BLOCK=16)

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        run(X).block_until_ready()
    text = str(caught.value)
    assert "OutOfBoundsError: kernel 'beyond', program (0, 0, 0): load accesses element 16 of 'x', which has 16" in text
    assert re.search(r"at .*test_jax_calls\.py:\d+, in beyond", text)


@weft.jit
def backwards(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(out + offsets))


def test_inputs_are_read_only() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        call(backwards, jnp.asarray(X), out_shape=X, grid=1, BLOCK=16).block_until_ready()
    reason = "ValueError: kernel 'backwards': parameter 'x': found a read-only array, but the kernel writes through it"
    assert reason in str(caught.value)


def test_without_a_rule_there_is_no_gradient() -> None:
    def total(x: Any) -> Any:
        return call(sine, x, out_shape=x, grid=1, BLOCK=16).sum()

    with pytest.raises(ValueError, match="The FFI call to `weft_kernel` cannot be differentiated"):
        jax.grad(total)(X)


class Weights(NamedTuple):
    """Arrays and a constant, as one argument."""

    scale: Any
    rest: tuple[Any, int]


@weft.jit
def weighted(x: Any, weights: Any, out: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.load(weights.scale + i) + tl.load(weights.rest[0]) * weights.rest[1])


def test_tuples_of_arrays() -> None:
    def function(x: Any, scale: Any, offset: Any) -> Any:
        return call(weighted, x, Weights(scale, (offset, 3)), out_shape=x, grid=(1,), BLOCK=8)

    x, scale, offset = jnp.arange(8.0), jnp.linspace(1.0, 2.0, 8), jnp.float32(0.5)
    np.testing.assert_allclose(jax.jit(function)(x, scale, offset), x * scale + 1.5, rtol=1e-6)
    rows = jax.vmap(function, in_axes=(0, None, 0))(jnp.stack([x, x + 1]), scale, jnp.arange(2.0))
    np.testing.assert_allclose(rows, jnp.stack([x * scale, (x + 1) * scale + 3]), rtol=1e-6)


@pytest.mark.parametrize(("weights", "kind"), [([jnp.ones(8)], "list"), ({"a": (jnp.ones(8),)}, "dict")])
def test_lists_and_dicts_of_arrays_are_refused(weights: Any, kind: str) -> None:
    x = jnp.ones(8)
    with pytest.raises(TypeError) as raised:
        call(weighted, x, weights, out_shape=x, grid=(1,), BLOCK=8)
    assert str(raised.value) == (
        f"kernel 'weighted': parameter 'weights' is a {kind} of arrays; kernels take tuples and named tuples of them"
    )


def doubled(x: Any, out: Any, n: Any, BLOCK: tl.constexpr, EVEN: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x + i) if EVEN else tl.load(x + i, mask=i < n)
    tl.store(out + i, 2 * y, mask=i < n)


def test_autotuned_kernels() -> None:
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64}, num_warps=8)]
    even = triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})(triton.jit(doubled))
    tuned = triton.autotune(configs, key=["n"])(even)
    seen: list[int] = []

    def grid(given: Any) -> tuple[int, ...]:
        seen.append(given["BLOCK"])
        return (triton.cdiv(given["n"], given["BLOCK"]),)

    def function(x: Any) -> Any:
        return call(tuned, x, n=x.size, out_shape=x, grid=grid)

    for n in (100, 64, 100):
        x = jnp.arange(float(n))
        np.testing.assert_array_equal(jax.jit(function)(x), 2 * x)
    assert set(seen) == {16, 64}
    assert len(tuned.cache) == 2
    assert {config.kwargs["BLOCK"] for config in tuned.cache.values()} <= {16, 64}


def test_a_parameter_that_no_configuration_has() -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])(
        triton.jit(doubled)
    )
    x = jnp.ones(8)
    with pytest.raises(TypeError) as raised:
        call(tuned, x, n=8, out_shape=x, grid=(1,))
    assert str(raised.value) == "kernel 'doubled': the constexpr parameter 'EVEN' has no value"
