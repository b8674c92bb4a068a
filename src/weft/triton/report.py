"""``triton.testing.perf_report``: a function measured over sizes and providers: a table, a CSV file, with matplotlib a plot."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(eq=False)
class Benchmark:
    """What to measure: for each of ``x_vals`` (values of ``x_names``; a tuple gives each name its own) and each of ``line_vals``
    (values of ``line_arg``, shown as ``line_names``), with ``args`` besides. The rest is the plot's."""

    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None


_PAIR: Final = 2
"""The columns of a table to which a column of differences can be added."""


class Mark:
    """A function with its benchmarks; `run` measures them."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **keywords: Any,
    ) -> Any:
        """Measures; prints tables, writes CSV files (``save_precision`` digits), plots and ``results.html`` to ``save_path``.

        ``diff_col`` adds the second column less the first where there are two, as in Triton. With ``return_df`` returns the
        table (pandas' if it is installed, else the rows), in a list where there are several benchmarks. The function gets other
        keywords.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else list(self.benchmarks)
        folder = Path(save_path) if save_path else None
        tables: list[Any] = []
        try:
            for bench in benchmarks:
                names, rows = self._measured(bench, **keywords)
                if bench.plot_name and (show_plots or folder):
                    _plot(bench, rows, folder, show_plots)
                plain = [_columns(bench, row) for row in rows]
                if diff_col and len(bench.x_names) + len(bench.line_names) == _PAIR:
                    names, plain = [*names, "Diff"], [[*row, row[1] - row[0]] for row in plain]
                if print_data:
                    _print(bench, names, plain)
                if folder:
                    _write(folder, bench, names, plain, save_precision)
                tables.append(_frame(names, plain))
        finally:
            if folder:
                _page(folder, benchmarks[: len(tables)])
        if not return_df:
            return None
        return tables[0] if single else tables

    def _measured(self, bench: Benchmark, **keywords: Any) -> tuple[list[str], list[list[Any]]]:
        """The names of the columns, and a row of numbers for each size: x values, then (y, least, most) of each line."""
        rows: list[list[Any]] = []
        for x in bench.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            if len(values) != len(bench.x_names):
                raise ValueError(f"Expected {len(bench.x_names)} values, got {x}")
            row: list[Any] = [*values]
            for line in bench.line_vals:
                given = dict(zip(bench.x_names, values, strict=True)) | {bench.line_arg: line}
                found = self.fn(**given, **bench.args, **keywords)
                row.append(tuple(found) if isinstance(found, (tuple, list)) else (found, None, None))
            rows.append(row)
        return [*bench.x_names, *(f"{name} ({bench.ylabel})" for name in bench.line_names)], rows


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorates a function that returns a number, or a number with its least and greatest, with what to measure."""
    return lambda fn: Mark(fn, benchmarks)


def _columns(bench: Benchmark, row: list[Any]) -> list[Any]:
    """A row with the middle of each line."""
    sizes = len(bench.x_names)
    return [*row[:sizes], *(cell[0] for cell in row[sizes:])]


def _print(bench: Benchmark, names: list[str], rows: list[list[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{bench.plot_name}:", title_justify="left", box=None, header_style="none")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.6f}" if isinstance(v, float) else str(v) for v in row))
    Console(soft_wrap=True).print(table)


def _write(folder: Path, bench: Benchmark, names: list[str], rows: list[list[Any]], digits: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{bench.plot_name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([f"{v:.{digits}f}" if isinstance(v, float) else v for v in row] for row in rows)


def _frame(names: list[str], rows: list[list[Any]]) -> Any:
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        return [dict(zip(names, row, strict=True)) for row in rows]
    return pandas.DataFrame(rows, columns=names)


def _plot(bench: Benchmark, rows: list[list[Any]], folder: Path | None, show: bool) -> None:
    """The plot, where matplotlib is installed."""
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return
    figure: Any = pyplot.figure()
    axes = figure.add_subplot()
    sizes, x = len(bench.x_names), [row[0] for row in rows]
    for i, name in enumerate(f"{name} ({bench.ylabel})" if bench.ylabel else name for name in bench.line_names):
        colour, style = bench.styles[i] if bench.styles else (None, None)
        cells = [row[sizes + i] for row in rows]
        axes.plot(x, [cell[0] for cell in cells], label=name, color=colour, ls=style)
        if all(cell[1] is not None and cell[2] is not None for cell in cells):
            axes.fill_between(x, [c[1] for c in cells], [c[2] for c in cells], alpha=0.15, color=colour)
    axes.legend()
    axes.set_xlabel(bench.xlabel or bench.x_names[0])
    axes.set_ylabel(bench.ylabel)
    axes.set_xscale("log" if bench.x_log else "linear")
    axes.set_yscale("log" if bench.y_log else "linear")
    if show:
        pyplot.show()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{bench.plot_name}.png")
    pyplot.close(figure)


def _page(folder: Path, benchmarks: Sequence[Benchmark]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pictures = "".join(f'<img src="{bench.plot_name}.png"/>\n' for bench in benchmarks)
    (folder / "results.html").write_text(f"<html><body>\n{pictures}</body></html>\n", encoding="utf-8")
