"""`triton.testing` and `triton.knobs`, and the driver: times, reports, settings."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from weft import triton
from weft.triton import knobs, profiler, testing
from weft.triton.profiler import viewer
from weft.triton.report import Benchmark, perf_report
from weft.triton.runtime.cache import (
    FileCacheManager,
    RemoteCacheBackend,
    RemoteCacheManager,
    get_cache_manager,
)
from weft.triton.tools.tensor_descriptor import TensorDescriptor


def test_do_bench() -> None:
    calls: list[int] = []
    times = testing.do_bench(lambda: calls.append(1), warmup=0, rep=0.01, return_mode="all")
    assert len(times) >= 1
    assert all(time >= 0 for time in times)
    assert len(calls) == 3 + len(times)
    quantiles = testing.do_bench(lambda: None, warmup=0, rep=0.01, quantiles=[0.5, 0.2, 0.8])
    assert quantiles[1] <= quantiles[0] <= quantiles[2]
    assert isinstance(testing.do_bench_cudagraph(lambda: None, rep=0.01, quantiles=[0.5]), float)


def test_do_bench_refuses_an_unknown_mode() -> None:
    with pytest.raises(AssertionError) as raised:
        testing.do_bench(lambda: None, return_mode="best")
    assert str(raised.value) == "return_mode is 'best', expected one of min, max, mean, median, all"


def test_assert_close() -> None:
    testing.assert_close(np.ones(3), np.ones(3) + 0.009)
    with pytest.raises(AssertionError):
        testing.assert_close(np.ones(3), np.ones(3) + 0.011)
    testing.assert_close(np.ones(3), np.ones(3) + 0.011, atol=lambda _: 0.1)


@perf_report(
    Benchmark(
        x_names=["m", "n"],
        x_vals=[4, (2, 8)],
        line_arg="provider",
        line_vals=["a", "b"],
        line_names=["A", "B"],
        plot_name="products",
        args={"plus": 1},
        ylabel="GB/s",
    )
)
def products(m: int, n: int, provider: str, plus: int) -> Any:
    value = float(m * n + plus)
    return value if provider == "a" else (value, value - 1, value + 1)


def test_a_report_is_a_table_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    products.run(print_data=True, save_path=str(tmp_path))
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert shown == [
        ["products:"],
        ["m", "n", "A", "(GB/s)", "B", "(GB/s)"],
        ["4", "4", "17.000000", "17.000000"],
        ["2", "8", "17.000000", "17.000000"],
    ]
    assert (
        tmp_path / "products.csv"
    ).read_text() == "m,n,A (GB/s),B (GB/s)\n4,4,17.000000,17.000000\n2,8,17.000000,17.000000\n"
    assert (tmp_path / "results.html").exists()


def test_what_a_report_returns() -> None:
    bench = Benchmark(["n"], [1, 2], "provider", ["a"], ["A"], "lines", {}, ylabel="ms")
    found = perf_report(bench)(lambda n, provider: [2.0 * n, 1.0, 3.0]).run(return_df=True, diff_col=True)
    rows = found if isinstance(found, list) else found.to_dict("records")
    assert rows == [{"n": 1, "A (ms)": 2.0, "Diff": 1.0}, {"n": 2, "A (ms)": 4.0, "Diff": 2.0}]


def test_a_report_that_fails_keeps_what_was_measured(tmp_path: Path) -> None:
    def failing(n: int, provider: str) -> float:
        return 1.0 / n

    benches = [Benchmark(["n"], [n], "provider", ["a"], ["A"], f"lines{n}", {}) for n in (1, 0)]
    with pytest.raises(ZeroDivisionError):
        perf_report(benches)(failing).run(save_path=str(tmp_path))
    assert (tmp_path / "results.html").read_text() == '<html><body>\n<img src="lines1.png"/>\n</body></html>\n'
    assert (tmp_path / "lines1.csv").read_text() == "n,A ()\n1,1.000000\n"


def test_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib: Any = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("agg")
    drawn: list[Any] = []
    figures: Any = importlib.import_module("matplotlib.pyplot")
    monkeypatch.setattr(figures, "close", drawn.append)
    products.run(save_path=str(tmp_path))
    (axes,) = drawn[0].axes
    assert [(line.get_label(), *map(list, line.get_data())) for line in axes.lines] == [
        ("A (GB/s)", [4, 2], [17.0, 17.0]),
        ("B (GB/s)", [4, 2], [17.0, 17.0]),
    ]
    (band,) = axes.collections
    assert {tuple(point) for point in band.get_paths()[0].vertices} == {(4, 16), (4, 18), (2, 16), (2, 18)}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("m", "GB/s")
    assert (tmp_path / "products.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_refuses_another_number_of_values() -> None:
    bench = Benchmark(["m", "n"], [(1, 2, 3)], "p", [0], ["0"], "x", {})
    with pytest.raises(ValueError, match="Expected 2") as raised:
        perf_report(bench)(lambda **_: 0).run()
    assert str(raised.value) == "Expected 2 values, got (1, 2, 3)"


# ---- the driver -----------------------------------------------------------------------------------------------------


def test_the_driver() -> None:
    driver = triton.runtime.driver.active
    assert driver.get_current_target().backend == "cpu"
    assert driver.get_current_device() == 0
    assert driver.get_device_capability() == (9, 0)
    properties = driver.utils.get_device_properties(0)
    assert properties["warpSize"] == 32
    assert properties["multiprocessor_count"] >= 1
    assert properties["max_shared_mem"] == 232448


def test_events_measure_time() -> None:
    interface = triton.runtime.driver.active.get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    end.record()
    interface.synchronize()
    assert start.elapsed_time(end) >= 0


# ---- settings -------------------------------------------------------------------------------------------------------


def test_a_setting_follows_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_PRINT_AUTOTUNING", raising=False)
    assert knobs.autotuning.print is False
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    assert knobs.autotuning.print is True
    with knobs.autotuning.scope():
        knobs.autotuning.print = False
        assert knobs.autotuning.print is False
        knobs.autotuning.print = knobs.env
        assert knobs.autotuning.print is False  # assigning has set the variable
    assert knobs.autotuning.print is True


def test_folders_follow_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_HOME", "/somewhere")
    assert knobs.cache.dir == "/somewhere/.triton/cache"


def test_an_unknown_setting() -> None:
    with pytest.raises(AttributeError) as raised:
        _ = knobs.redis.password
    assert str(raised.value) == "triton.knobs has no setting 'password' here; it has key_format, host, port"


def test_hooks_are_called_in_their_order() -> None:
    seen: list[int] = []
    for backwards, order in ((False, [1, 2]), (True, [2, 1])):
        chain = knobs.HookChain(backwards)
        for i in (1, 2):
            chain.add(lambda i=i: seen.append(i))
        chain()
        assert seen == order
        seen.clear()


# ---- descriptors ----------------------------------------------------------------------------------------------------


def test_a_descriptor_of_an_array() -> None:
    array = np.zeros((8, 16), np.float32)
    descriptor = TensorDescriptor.from_tensor(array, [4, 16])
    assert (descriptor.shape, descriptor.strides, descriptor.block_shape) == ((8, 16), [16, 1], [4, 16])


@pytest.mark.parametrize(
    ("strides", "block", "message"),
    [
        ([16], [4, 16], "rank mismatch"),
        ([3, 1], [4, 16], "strides must be 16-byte aligned"),
        ([16, 2], [4, 16], "Last dimension must be contiguous"),
    ],
)
def test_descriptors_that_hardware_has_not(strides: list[int], block: list[int], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        TensorDescriptor(np.zeros((8, 16), np.float32), [8, 16], strides, block)


def test_blocks_are_powers_of_two() -> None:
    with pytest.raises(ValueError, match="power") as raised:
        TensorDescriptor.from_tensor(np.zeros((8, 16), np.float32), [4, 12])
    assert str(raised.value) == "Shape element 1 must be a power of 2"


def test_groups_that_programs_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ours(knobs.base_knobs):
        word = knobs.env_str("OWN_TEST_WORD", "none")
        depth = knobs.env_int("OWN_TEST_DEPTH", 3)
        fast = knobs.env_bool("OWN_TEST_FAST", True)
        path = knobs.env_opt_str("OWN_TEST_PATH")
        maybe = knobs.env_opt_bool("OWN_TEST_MAYBE")

    class More(Ours):
        other = knobs.env_bool("OWN_TEST_OTHER")

    group = More()
    assert group.knobs == {"word": "none", "depth": 3, "fast": True, "path": None, "maybe": None, "other": False}
    monkeypatch.setenv("OWN_TEST_DEPTH", "4")
    monkeypatch.setenv("OWN_TEST_MAYBE", "0")
    assert (group.depth, group.maybe) == (4, False)
    monkeypatch.setattr(knobs, "propagate_env", False)
    copied = group.copy()
    copied.word = "other"
    assert (isinstance(copied, More), copied.word, group.word) == (True, "other", "none")


def test_the_folders_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.build.backend_dirs == set()
    monkeypatch.setenv("TRITON_CUDART_PATH", "/cuda/rt")
    assert knobs.build.backend_dirs == {"/cuda/rt"}


def test_a_file_that_is_open_stays_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows refuses to replace it. What cannot be written at all raises, and nothing is left behind."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    files = FileCacheManager("key")
    path = Path(files.put("before", "a"))

    def refused(source: object, target: object) -> None:
        raise PermissionError(13, "Access is denied")

    monkeypatch.setattr(os, "replace", refused)
    assert files.put("after", "a") == str(path)
    assert path.read_text(encoding="utf-8") == "before"
    with pytest.raises(PermissionError, match="Access is denied"):
        files.put("new", "b")
    assert list(path.parent.iterdir()) == [path]


class Files(FileCacheManager):
    """A cache of a program's own."""


def test_the_class_of_a_cache_may_be_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "weft.triton.runtime.cache:FileCacheManager")
    assert type(get_cache_manager("key")) is FileCacheManager
    monkeypatch.setattr(knobs.cache, "manager_class", Files)
    assert type(get_cache_manager("key")) is Files


class Store(RemoteCacheBackend):
    """A store of a program's own."""

    kept: ClassVar[dict[tuple[str, str], bytes]] = {}

    def get(self, filenames: Iterable[str]) -> dict[str, bytes]:
        return {name: self.kept[self.key, name] for name in filenames if (self.key, name) in self.kept}

    def put(self, filename: str, data: bytes) -> None:
        self.kept[self.key, filename] = data


def test_files_in_a_store_of_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the store has counts, not the copy on this machine."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    monkeypatch.setattr(knobs.cache, "dump_dir", str(tmp_path / "dump"))
    monkeypatch.setattr(Store, "kept", {})
    with pytest.raises(RuntimeError) as caught:
        RemoteCacheManager("key")
    assert str(caught.value) == (
        "Unable to instantiate RemoteCacheManager, TRITON_REMOTE_CACHE_BACKEND doesn't point to a valid class"
    )
    monkeypatch.setattr(knobs.cache, "remote_manager_class", Store)
    monkeypatch.setattr(knobs.cache, "manager_class", RemoteCacheManager)
    files = get_cache_manager("key")
    assert files.get_file("a") is None and files.get_group("a") is None
    path = files.put("text", "a")
    files.put(b"bytes", "b")
    files.put_group("a", {"a": path, "b": "elsewhere"})
    assert Store.kept["key", "a"] == b"text" and Path(path).read_text(encoding="utf-8") == "text"
    Store.kept["key", "a"] = b"newer"
    group = RemoteCacheManager("key").get_group("a")
    assert group is not None and {name: Path(at).read_bytes() for name, at in group.items()} == {
        "a": b"newer",
        "b": b"bytes",
    }
    assert RemoteCacheManager("other").get_file("a") is None
    del Store.kept["key", "b"]
    assert files.get_group("a") is None and files.get_file("b") is None
    dumps = RemoteCacheManager("key", dump=True)
    dumps.put("only here", "c")
    dumps.put_group("c", {"c": dumps.get_file("c") or ""})
    assert ("key", "c") not in Store.kept and dumps.get_group("c") == {"c": str(tmp_path / "dump" / "key" / "c")}


def test_the_profiler_records_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert profiler.start("name", hook="triton") == 0

    @profiler.scope("function", metrics={"flops": 1})
    def function() -> int:
        with profiler.scope("block"), profiler.cpu_timed_scope("timed"), profiler.metadata_state():
            return 3

    assert profiler.profile(name="all")(function)() == 3
    profiler.deactivate()
    profiler.finalize()
    tree, names = viewer.parse(["time/ms"], "name.hatchet")
    viewer.print_tree(tree, names)
    assert capsys.readouterr().out == (
        "weft records no times for triton.profiler; measure with triton.testing.do_bench, or count with 'weft run --device'\n"
    )
