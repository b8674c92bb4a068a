"""``triton.runtime.autotuner``: the fastest of several configurations, and values that are computed from arguments.

A sweep compiles and measures each configuration at the first launch for a key. Configurations that ask for more than a machine
has, or that a `tl.static_assert` refuses, count as infinitely slow.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from weft.triton import knobs
from weft.triton.compiler.errors import CompileTimeAssertionFailure
from weft.triton.runtime import arrays, sweep
from weft.triton.runtime.configs import OPTIONS, Config
from weft.triton.runtime.driver import driver
from weft.triton.runtime.errors import AutotunerError, OutOfResources, PTXASError
from weft.triton.runtime.jit import JITFunction, KernelInterface

__all__ = ["Autotuner", "Config", "Heuristics", "KernelInterface", "OutOfResources", "autotune", "heuristics"]

QUANTILES: Final = (0.5, 0.2, 0.8)
"""What is measured of each configuration: the median decides."""


class Autotuner(KernelInterface):
    """A kernel with configurations; parameters as `autotune`."""

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None:
        self.fn = fn
        self.__name__ = self.base_fn.__name__  # an attribute, which subclasses of programs set
        self.arg_names = list(arg_names)
        self.configs = list(configs) if configs else [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self._check_names()
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.configs_timings: sweep.Timings = {}
        self.cache_results = cache_results or knobs.autotuning.cache
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._prepare
        self.post_hook: Callable[..., Any] = post_hook or self._restore
        pruning = prune_configs_by or {}
        self.perf_model = pruning.get("perf_model")
        self.configs_top_k = pruning.get("top_k", 1.0)
        self.early_config_prune = pruning.get("early_config_prune")
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._do_bench = self._deprecated_bench() or do_bench
        self.nargs: dict[str, Any] | None = None
        self.bench_time: float | None = None
        self.best_config: Config | None = None

    def _check_names(self) -> None:
        """Refuses lists with names that are no arguments. Warns of those in ``key``, which Triton ignored before 3.9."""
        parts = {"key": self.keys, "reset_to_zero": self.reset_to_zero, "restore_value": self.restore_value}
        for part, names in parts.items():
            if unknown := [name for name in names if name not in self.arg_names]:
                message = (
                    f"{part} contains names that are not kernel arguments: {', '.join(unknown)}. Valid argument names are: "
                    f"{', '.join(self.arg_names)}."
                )
                if part != "key":
                    raise ValueError(message)
                warnings.warn(f"{message} They are ignored; Triton 3.9 refuses them.", UserWarning, stacklevel=4)

    def _deprecated_bench(self) -> Callable[..., Any] | None:
        warmup, rep, graph = self.num_warmups, self.num_reps, self.use_cuda_graph
        if warmup is None and rep is None and not graph:
            return None
        warnings.warn(
            "warmup, rep, and use_cuda_graph parameters are deprecated; pass do_bench", DeprecationWarning, stacklevel=4
        )
        from weft.triton import testing

        def bench(call: Callable[[], Any], quantiles: Sequence[float]) -> Any:
            if graph:
                return testing.do_bench_cudagraph(call, rep=rep or 100, quantiles=quantiles)
            before, measured = (25 if warmup is None else warmup), (100 if rep is None else rep)
            return testing.do_bench(call, warmup=before, rep=measured, quantiles=quantiles)

        return bench

    @cached_property
    def base_fn(self) -> Any:
        """The Python function."""
        function = self.fn
        while not inspect.isfunction(function):
            function = function.fn
        return function

    @property
    def kernel(self) -> Any:
        """The kernel under autotuners and heuristics."""
        kernel = self.fn
        while not isinstance(kernel, JITFunction):
            kernel = kernel.fn
        return kernel

    @cached_property
    def do_bench(self) -> Callable[..., Any]:
        """What measures a configuration: ``do_bench(launch, quantiles=...)``, milliseconds."""
        return self._do_bench or driver.active.get_benchmarker()

    # ---- hooks ------------------------------------------------------------------------------------------------------

    def _prepare(self, arguments: Mapping[str, Any], reset_only: bool = False) -> None:
        """Before a measured launch: zeroes arrays, and copies those to restore."""
        for name in self.reset_to_zero:
            if arguments[name] is not None:
                arrays.zero(arguments[name])
        if not reset_only:
            self.restore_copies = {
                name: arrays.copy_of(arguments[name]) for name in self.restore_value if arguments[name] is not None
            }

    def _restore(self, arguments: Mapping[str, Any], exception: Exception | None) -> None:
        """After a measured launch: copies back."""
        for name, copy in self.restore_copies.items():
            arrays.restore(arguments[name], copy)
        self.restore_copies = {}

    # ---- sweeps -----------------------------------------------------------------------------------------------------

    def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
        """The times of a configuration."""
        if conflicts := meta.keys() & config.kwargs.keys():
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(sorted(conflicts))}. Make sure that you don't re-define auto-tuned "
                "symbols."
            )
        if knobs.autotuning.print:
            _say(f"Autotuning kernel {self.__name__} with config {config}")
        current = meta | config.all_kwargs()
        arguments = (self.nargs or {}) | current

        def launch() -> None:
            if config.pre_hook is not None:
                config.pre_hook(arguments)
            self.pre_hook(arguments)
            try:
                self.fn.run(*args, **current)
            except Exception as error:
                self.post_hook(arguments, exception=error)
                raise
            self.post_hook(arguments, exception=None)

        try:
            return self.do_bench(launch, quantiles=QUANTILES)
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as error:
            if knobs.autotuning.print:
                _say(f"Autotuning failed with {error}")
            return [float("inf")] * len(QUANTILES)

    def _key(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """What a sweep holds for: the values of the key's arguments, and the dtypes of all."""
        named = {k: v for k, v in ((self.nargs or {}) | dict(keywords)).items() if k in self.arg_names}
        values = [named[name] for name in self.keys if name in named]
        return (*values, *(str(value.dtype) for value in named.values() if hasattr(value, "dtype")))

    def _sweep(self, key: tuple[Any, ...], configs: Sequence[Config], args: tuple[Any, ...], keywords: Any) -> bool:
        """Measures, or reads times from disk; whether they were on disk."""
        # The functions of configurations are not part of what is on disk.
        kept = sweep.entry(self.kernel, key, configs) if self._on_disk(key, configs) else None
        timings = sweep.load(*kept) if kept else None
        found = timings is not None
        if timings is None:
            start = time.time()
            timings = sweep.measured(
                self.__name__, configs, lambda config: self._bench(*args, config=config, **keywords), self._same()
            )
            self.bench_time = time.time() - start
        self.configs_timings = timings
        self.cache[key] = min(timings, key=lambda config: timings[config])
        if not found:
            self.pre_hook((self.nargs or {}) | dict(keywords) | self.cache[key].all_kwargs(), reset_only=True)
            if kept:
                sweep.store(*kept, key, timings)
        return found

    def _same(self) -> Callable[[Config], object]:
        """What of a configuration decides its time. A measuring function of the program's own is called for each."""
        on_cpu = driver.active.get_current_target().backend == "cpu" and self._do_bench is None
        return Config.code if on_cpu and not OPTIONS.intersection(self.arg_names) else _itself

    def _on_disk(self, key: tuple[Any, ...], configs: Sequence[Config]) -> bool:
        return bool(self.cache_results and key and not any(config.pre_hook for config in configs))

    def check_disk_cache(
        self, tuning_key: tuple[Any, ...], configs: Sequence[Config], bench_fn: Callable[[], Any]
    ) -> bool:
        """Reads the times of a sweep from disk, or calls ``bench_fn`` and keeps its times; whether they were on disk."""
        if not self._on_disk(tuning_key, configs):
            bench_fn()
            return False
        manager, file = sweep.entry(self.kernel, tuning_key, configs)
        if (timings := sweep.load(manager, file)) is None:
            bench_fn()
            sweep.store(manager, file, tuning_key, self.configs_timings)
            return False
        self.configs_timings = timings
        self.cache[tuning_key] = min(timings, key=lambda config: timings[config])
        return True

    def run(self, *args: Any, **keywords: Any) -> Any:
        """Launches with the fastest configuration, after a sweep at the first launch for a key."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        config, swept, key = self.configs[0], False, ()
        if len(self.configs) > 1:
            key = self._key(args, keywords)
            if key not in self.cache:
                configs = self.prune_configs(keywords)
                if len(configs) == 1:
                    self.cache[key] = configs[0]
                else:
                    found = self._sweep(key, configs, args, keywords)
                    swept = not found
                    self._tell(key, found)
            config = self.cache[key]
        self.best_config = config
        if swept and knobs.autotuning.print:
            _say(
                f"Triton autotuning for function {self.__name__},\nwith key as {key},\nfinished after "
                f"{self.bench_time:.2f}s,\nbest config selected: {config};"
            )
        if config.pre_hook is not None:
            config.pre_hook(self.nargs | keywords | config.all_kwargs())
        result = self.fn.run(*args, **keywords, **config.all_kwargs())
        self.nargs = None
        return result

    def _tell(self, key: tuple[Any, ...], found: bool) -> None:
        if (listener := knobs.autotuning.listener) is not None:
            listener(
                fn=self.kernel,
                key=key,
                best_config=self.cache[key],
                configs_timings=self.configs_timings,
                duration=None if found else self.bench_time,
                cache_hit=found,
            )

    def prune_configs(self, keywords: Mapping[str, Any]) -> list[Config]:
        """The configurations to measure: what ``early_config_prune`` keeps, of these the best by ``perf_model``."""
        configs = self.configs
        if self.early_config_prune is not None:
            configs = self.early_config_prune(configs, self.nargs, **keywords)
            if not configs:
                raise AutotunerError(
                    "No valid autotuner configs after pruning. `early_config_prune` should return at least one config."
                )
        if self.perf_model is None:
            return configs
        most = self.configs_top_k
        if isinstance(most, float) and most <= 1.0:
            most = max(1, int(len(configs) * most))
        elif not isinstance(most, int):
            raise TypeError("Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int")
        if len(configs) <= most:
            return configs
        model = self.perf_model
        price = {c: model(**(self.nargs or {}), **keywords, **c.all_kwargs()) for c in configs}
        return sorted(configs, key=lambda config: price[config])[:most]

    def warmup(self, *args: Any, **keywords: Any) -> list[Any]:
        """Compiles all configurations that a sweep would measure."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        made = [self.fn.warmup(*args, **keywords, **c.all_kwargs()) for c in self.prune_configs(keywords)]
        self.nargs = None
        return made


def _itself(config: Config) -> Config:
    return config


def _say(text: str) -> None:
    print(text)  # noqa: T201  # asked for by TRITON_PRINT_AUTOTUNING


class Heuristics(KernelInterface):
    """A kernel of which some values are computed from the arguments."""

    def __init__(
        self, fn: Any, arg_names: Sequence[str], values: Mapping[str, Callable[[dict[str, Any]], Any]]
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = values

    def run(self, *args: Any, **keywords: Any) -> Any:
        """Launches with the computed values; each function sees those computed before."""
        for name, compute in self.values.items():
            keywords[name] = compute(dict(zip(self.arg_names, args, strict=False)) | keywords)
        return self.fn.run(*args, **keywords)


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Decorates a kernel with configurations, of which launches use the fastest.

    ``key`` names arguments; other values of them start another sweep. ``reset_to_zero`` and ``restore_value`` name arrays that
    measured launches must not change for good. ``prune_configs_by`` has ``early_config_prune``, ``perf_model`` and ``top_k``.
    ``pre_hook`` and ``post_hook`` replace what is done to arrays around each measured launch. ``do_bench`` measures. With
    ``cache_results`` times are kept on disk, in ``knobs.cache.dir``.
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by,
            warmup, rep, use_cuda_graph, do_bench, cache_results,
        )  # fmt: skip

    return decorate


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Decorates a kernel with functions that compute compile-time values: name -> function of the dict of all arguments."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)
