"""`triton.autotune` and `triton.heuristics`: which configurations are measured, when, and what is done to arrays around it."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft import triton
from weft.runtime.emulated import emulate
from weft.target import gpu
from weft.triton import knobs
from weft.triton import language as tl
from weft.triton.errors import AutotunerError
from weft.triton.runtime.autotuner import Autotuner, Config

pytestmark = pytest.mark.jit

CONFIGS = [Config({"BLOCK": 32}), Config({"BLOCK": 64}, num_warps=8), Config({"BLOCK": 128})]


def body(x: Any, out: Any, n: Any, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(out + i, mask=i < n)
    tl.store(out + i, old + tl.load(x + i, mask=i < n), mask=i < n)


class Clock:
    """Measures what it is told: the times of configurations in the order of measuring."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.calls = 0

    def __call__(self, launch: Any, quantiles: Any) -> list[float]:
        launch()
        self.calls += 1
        return [self.times[(self.calls - 1) % len(self.times)]] * len(quantiles)


def tuned(clock: Clock, **keywords: Any) -> Any:
    options: dict[str, Any] = {"configs": CONFIGS, "key": ["n"], "do_bench": clock} | keywords
    return triton.autotune(**options)(triton.jit(body))


def run(kernel: Any, n: int = 100) -> Any:
    x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out


def test_the_fastest_is_used_and_kept_for_the_key() -> None:
    clock = Clock(3, 1, 2)
    kernel = tuned(clock, reset_to_zero=["out"])
    np.testing.assert_array_equal(run(kernel), 1)
    assert kernel.best_config == CONFIGS[1]
    assert clock.calls == 3
    run(kernel)
    assert clock.calls == 3
    run(kernel, 90)
    assert clock.calls == 6
    assert [timing[0] for timing in kernel.configs_timings.values()] == [3, 1, 2]


def test_other_dtypes_start_another_sweep() -> None:
    clock = Clock(1, 2, 3)
    kernel = tuned(clock)
    run(kernel)
    kernel[(4,)](np.ones(100, np.float64), np.zeros(100, np.float64), 100)
    assert clock.calls == 6


def test_without_reset_measured_launches_add_up() -> None:
    np.testing.assert_array_equal(run(tuned(Clock(1, 2, 3))), 4)


def test_values_are_restored() -> None:
    np.testing.assert_array_equal(run(tuned(Clock(1, 2, 3), restore_value=["out"])), 1)


def test_hooks_replace_what_is_done_to_arrays() -> None:
    seen: list[str] = []

    def before(arguments: Any, reset_only: bool = False) -> None:
        seen.append(f"before {arguments['BLOCK']}{' reset' * reset_only}")

    def after(arguments: Any, exception: Any) -> None:
        seen.append(f"after {arguments['BLOCK']} {exception}")

    run(tuned(Clock(2, 1), configs=CONFIGS[:2], pre_hook=before, post_hook=after))
    assert seen == ["before 32", "after 32 None", "before 64", "after 64 None", "before 64 reset"]


def test_the_hook_of_a_configuration_is_called_before_each_launch() -> None:
    seen: list[int] = []
    configs = [Config({"BLOCK": b}, pre_hook=lambda a: seen.append(a["BLOCK"])) for b in (32, 64)]
    run(tuned(Clock(1, 2), configs=configs))
    assert seen == [32, 64, 32]


def test_pruning() -> None:
    clock = Clock(1)
    pruned = {
        "early_config_prune": lambda configs, named, **_: configs[1:],
        "perf_model": lambda BLOCK, **_: -BLOCK,
        "top_k": 1,
    }
    kernel = tuned(clock, prune_configs_by=pruned)
    run(kernel)
    assert kernel.best_config == CONFIGS[2]
    assert clock.calls == 0  # a single configuration is not measured


def test_pruning_everything_is_an_error() -> None:
    with pytest.raises(AutotunerError) as raised:
        run(tuned(Clock(1), prune_configs_by={"early_config_prune": lambda configs, named, **_: []}))
    assert str(raised.value) == (
        "Autotuner error: No valid autotuner configs after pruning. `early_config_prune` should return at least one config."
    )


def test_what_a_static_assert_refuses_is_infinitely_slow() -> None:
    @triton.autotune(CONFIGS, key=["n"], do_bench=Clock(1))
    @triton.jit
    def kernel(x: Any, out: Any, n: Any, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK == 128)
        tl.store(out, BLOCK)

    run(kernel)
    assert kernel.best_config == CONFIGS[2]
    assert [timing[0] for timing in kernel.configs_timings.values()] == [float("inf"), float("inf"), 1]


def test_times_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    first, second = Clock(3, 1, 2), Clock(1, 1, 1)
    run(tuned(first, cache_results=True))
    kernel = tuned(second, cache_results=True)
    run(kernel)
    assert (first.calls, second.calls) == (3, 0)
    assert kernel.best_config == CONFIGS[1]


def test_a_listener_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(knobs.autotuning, "listener", lambda **told: seen.append(told))
    run(tuned(Clock(2, 1, 3)))
    assert len(seen) == 1
    assert seen[0]["best_config"] == CONFIGS[1]
    assert seen[0]["cache_hit"] is False


@pytest.mark.parametrize("part", ["reset_to_zero", "restore_value"])
def test_names_that_are_no_parameters(part: str) -> None:
    with pytest.raises(ValueError, match=f"{part} contains") as raised:
        tuned(Clock(1), **{part: ["m"]})
    assert str(raised.value) == (
        f"{part} contains names that are not kernel arguments: m. Valid argument names are: x, out, n, BLOCK."
    )


def test_a_key_that_is_no_parameter_is_ignored() -> None:
    """Programs written for Triton 3.8 have such keys; there was no check."""
    clock = Clock(2, 1, 3)
    with pytest.warns(UserWarning, match="key contains") as warned:
        kernel = tuned(clock, key=["m", "n"])
    assert [str(warning.message) for warning in warned] == [
        "key contains names that are not kernel arguments: m. Valid argument names are: x, out, n, BLOCK. They are ignored; "
        "Triton 3.9 refuses them."
    ]
    assert warned[0].filename == __file__
    run(kernel)
    assert kernel.best_config == CONFIGS[1]


def test_a_value_that_is_tuned_cannot_be_given() -> None:
    kernel = tuned(Clock(1))
    with pytest.raises(ValueError, match="Conflicting") as raised:
        kernel[(1,)](np.ones(4, np.float32), np.ones(4, np.float32), 4, BLOCK=4)
    assert str(raised.value) == (
        "Conflicting meta-parameters: BLOCK. Make sure that you don't re-define auto-tuned symbols."
    )


def test_warmup_compiles_each_configuration() -> None:
    x = np.ones(4, np.float32)
    made = tuned(Clock(1)).warmup(x, x.copy(), 4, grid=(1,))
    assert [kernel.metadata.num_warps for kernel in made] == [4, 8, 4]


def test_heuristics_see_arguments_and_what_was_computed_before() -> None:
    @triton.heuristics({"BLOCK": lambda a: triton.next_power_of_2(a["n"]), "TWICE": lambda a: 2 * a["BLOCK"]})
    @triton.jit
    def kernel(out: Any, n: Any, BLOCK: tl.constexpr, TWICE: tl.constexpr):
        tl.store(out, BLOCK + TWICE)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 5)
    assert out[0] == 24


def test_a_subclass_may_choose() -> None:
    class Last(Autotuner):
        def run(self, *args: Any, **keywords: Any) -> Any:
            return self.fn.run(*args, **keywords, **self.configs[-1].all_kwargs())

    kernel = triton.jit(body)
    out = run(Last(kernel, kernel.arg_names, CONFIGS, [], None, None))
    np.testing.assert_array_equal(out, 1)


def test_configurations_are_values() -> None:
    assert Config({"BLOCK": 32}) == CONFIGS[0] != Config({"BLOCK": 32}, num_warps=2)
    assert hash(Config({"BLOCK": 32})) == hash(CONFIGS[0])
    assert str(CONFIGS[1]) == "BLOCK: 64, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None, ir_override: None"


def counting(monkeypatch: pytest.MonkeyPatch, *times: float) -> Clock:
    """The clock that stands in for weft's own benchmark."""
    clock = Clock(*times)
    monkeypatch.setattr(triton.runtime.driver.active, "get_benchmarker", lambda: clock)
    return clock


SAME = [
    Config({"BLOCK": 32}, num_warps=2),
    Config({"BLOCK": 64}, num_warps=4),
    Config({"BLOCK": 64}, num_warps=8, num_stages=1),
    Config({"BLOCK": 32}, maxnreg=64),
]


def test_a_cpu_measures_the_same_code_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no warps, stages or limits of registers; configurations with their own hooks are measured."""
    clock = counting(monkeypatch, 2, 1)
    kernel = triton.autotune(configs=SAME, key=["n"])(triton.jit(body))
    np.testing.assert_array_equal(run(kernel) > 0, True)
    assert clock.calls == 2
    assert kernel.best_config == SAME[1]
    assert [times[0] for times in kernel.configs_timings.values()] == [2, 1, 1, 2]
    assert list(kernel.configs_timings) == SAME

    hooked = [*SAME, Config({"BLOCK": 32}, pre_hook=lambda arguments: None)]
    clock = counting(monkeypatch, 2, 1, 3)
    run(triton.autotune(configs=hooked, key=["n"])(triton.jit(body)))
    assert clock.calls == 3


def test_each_configuration_is_measured_where_it_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a function of the program's own, in the emulator, and where an option is a parameter too."""
    own = Clock(1)
    run(triton.autotune(configs=SAME, key=["n"], do_bench=own)(triton.jit(body)))
    assert own.calls == 4

    def with_warps(x: Any, out: Any, n: Any, BLOCK: tl.constexpr, num_warps: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + num_warps, mask=i < n)

    clock = counting(monkeypatch, 1)
    run(triton.autotune(configs=SAME, key=["n"])(triton.jit(with_warps)))
    assert clock.calls == 4

    clock = counting(monkeypatch, 1)
    with emulate(gpu("sm_80")):
        run(triton.autotune(configs=SAME, key=["n"])(triton.jit(body)))
    assert clock.calls == 4


def test_a_subclass_names_itself() -> None:
    """Libraries derive their own autotuners."""

    class Library(Autotuner):
        def __init__(self, *args: Any, **keywords: Any) -> None:
            super().__init__(*args, **keywords)
            self.__name__ = f"library_{self.__name__}"

    kernel = triton.jit(body)
    assert Library(kernel, kernel.arg_names, CONFIGS, ["n"], None, None).__name__ == "library_body"
