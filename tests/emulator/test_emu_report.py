"""A profile printed and as a page: what is shown, that the page stands alone and is well formed, and what its script does."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from emulator_profiles import HEADER, KERNEL, SOURCE, made
from weft.emulator.profile import METRICS, NOT_MODELLED, Profile
from weft.emulator.profile import ptxas as ptxas_module
from weft.emulator.profile.ptxas import Resources
from weft.emulator.profile.sources import Sources


@pytest.fixture(autouse=True)
def assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on machines with ptxas and without."""
    ptxas_says(monkeypatch, Resources(28, 16, 8, 0, 4096))


def ptxas_says(monkeypatch: pytest.MonkeyPatch, answer: Resources | str) -> None:
    def resources(*_: str) -> Resources | str:
        return answer

    monkeypatch.setattr(ptxas_module, "resources", resources)


# ---- the table ----------------------------------------------------------------------------------------------------------

PRINTED = """\
k  grid 2 x 1 x 1, block 64 x 1 x 1, sm_90
shared memory per block: 4,096 bytes + 256 dynamic; 28 registers, spills 16 + 8 bytes (ptxas)
20 warp instructions, 608 thread instructions, 95.0% of lanes active
checks that were off: races

memory          requests   bytes   counted in   number   ideal   of the ideal
─────────────────────────────────────────────────────────────────────────────
shared loads           4     512   wavefronts      128       4         32.00x
global stores          4     384      sectors       96      12          8.00x

other counts   number
─────────────────────
thread flops      128

instruction mix                    warp instructions   share
──────────────────────────────────────────────────────────────────
moves                                              4   20.0%   #####
arithmetic of 32-bit floats                        4   20.0%   #####
global memory                                      4   20.0%   #####
shared memory, ldmatrix, stmatrix                  4   20.0%   #####
branches, calls, exits                             4   20.0%   #####
"""


def test_printed():
    text = str(made())
    top, _, rest = text.partition("hottest lines")
    assert squeezed(top) == squeezed(PRINTED)
    lines = [" ".join(line.split()) for line in rest.splitlines()]
    assert lines[0] == "executions lanes wavefronts ideal sectors ideal"
    assert lines[2:] == [
        "kernel.cu:3 8 100% 128 4",
        "kernel.cu:4 4 75% 96 12",
        "square.h:3 4 100%",
        "",
        "printed by the kernel",
        "hello",
        "",
        "not modelled: time; caches; scheduling and occupancy; what ptxas makes of the PTX",
    ]
    assert max(map(len, text.splitlines())) <= 120


def squeezed(text: str) -> list[str]:
    """Lines without rules, runs of blanks as one."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("─")]


def test_printed_by_rich_with_colours():
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system="standard", highlight=False)
    console.print(made())
    assert re.search(r"\x1b\[1;31m *32\.00x", file.getvalue())


def test_printed_without_ptxas(monkeypatch: pytest.MonkeyPatch):
    ptxas_says(monkeypatch, "ptxas is not on PATH")
    assert "dynamic; registers and spills unknown: ptxas is not on PATH\n" in str(made())


def test_printed_with_source_text(tmp_path: Path):
    profile = at(made(), tmp_path)
    line = next(line for line in str(profile).splitlines() if line.startswith("kernel.cu:4"))
    assert "out[8 * threadIdx.x] = square(x);" in line


def test_long_source_lines_wrap_where_they_are_printed():
    text = " ".join(f"word{i}" for i in range(40))
    file = io.StringIO()
    Console(file=file, width=110).print(made().render({"kernel.cu": f"\n\n{text}\n"}))
    words = re.findall(r"word\d+", file.getvalue())
    assert words == text.split()


def test_printed_of_a_kernel_that_did_nothing():
    empty = dataclasses.replace(made(), instructions=(), output="")
    assert squeezed(str(empty))[2:] == [
        "0 warp instructions, 0 thread instructions, 0.0% of lanes active",
        "checks that were off: races",
        "not modelled: time; caches; scheduling and occupancy; what ptxas makes of the PTX",
    ]


def at(profile: Profile, folder: Path) -> Profile:
    """The profile of a source file that is in ``folder``."""
    Path(folder, "kernel.cu").write_text(SOURCE, encoding="utf-8")
    name = str(folder / "kernel.cu")
    rows = tuple(dataclasses.replace(r, file=name) if r.file == KERNEL else r for r in profile.instructions)
    return dataclasses.replace(profile, instructions=rows)


# ---- source text ----------------------------------------------------------------------------------------------------------


def test_sources_are_given_or_found(tmp_path: Path):
    profile = made()
    assert not Sources.of(profile)
    assert Sources.of(profile, {KERNEL: SOURCE}).line(KERNEL, 1) == "__global__ void k(float* out) {"
    assert Sources.of(profile, {"kernel.cu": SOURCE}).lines(KERNEL) == SOURCE.splitlines()
    assert not Sources.of(profile, {"nel.cu": SOURCE})
    Path(tmp_path, "square.h").write_text("one\ntwo", encoding="utf-8")
    found = Sources.of(profile, tmp_path)
    assert found.line(HEADER, 2) == "two"
    assert found.line(HEADER, 3) == ""
    assert found.line(KERNEL, 1) == ""
    assert Sources.of(at(made(), tmp_path)).line(str(tmp_path / "kernel.cu"), 6) == ""


# ---- the page ---------------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The elements of a page, checked to be nested; the text of each table's rows."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def test_a_page_has_every_line_with_its_numbers():
    page = Elements(made().html({"kernel.cu": SOURCE}))
    assert ["", "4", "75%", "", "", "96", "8.00×", "384", "4", "  out[8 * threadIdx.x] = square(x);"] in page.rows
    third = '  float x = t[threadIdx.x & 31][0] < 1 ? "a" : 0; // <b>'
    assert ["", "8", "100%", "128", "32.00×", "", "", "512", "3", third] in page.rows
    assert ["", "", "", "", "", "", "", "", "2", "  __shared__ float t[32][32];"] in page.rows
    assert [
        "",
        "4",
        "100%",
        "128",
        "32.00×",
        "",
        "",
        "512",
        "11",
        "kernel.cu:3",
        "ld.shared.f32 %f1, [%r2]",
    ] in page.rows
    assert ["shared loads", "4", "512", "128 wavefronts", "4", "32.00×"] in page.rows


def test_a_line_s_other_counts_are_shown_where_a_pointer_rests():
    page = Elements(made().html({"kernel.cu": SOURCE}))
    titles = [attributes.get("title") for tag, attributes in page.tags if tag == "tr"]
    said = "executions: 4\nthreads: 128\nthread flops: 128"
    assert titles.count(said) == 1  # the multiplication, whose source is not there
    stored = (
        "global store requests: 4\nglobal store bytes: 384\nglobal store sectors: 96\nglobal store ideal sectors: 12"
    )
    assert titles.count(f"executions: 4\nthreads: 96\n{stored}") == 2


@pytest.mark.parametrize(
    ("spread", "folded", "hidden"),
    [
        (10, ["lines 1 to 26", "lines 34 to 36", "lines 44 to 50"], 26 + 3 + 7),  # lines 30 and 40 have instructions
        (8, ["lines 1 to 20", "lines 36 to 50"], 20 + 15),  # 24 and 32: line 28 is alone between
    ],
)
def test_lines_far_from_any_that_has_instructions_are_folded(spread: int, folded: list[str], hidden: int):
    rows = tuple(
        dataclasses.replace(row, source_line=row.source_line * spread) if row.file == KERNEL else row
        for row in made().instructions
    )
    page = Elements(dataclasses.replace(made(), instructions=rows).html({"kernel.cu": "// x\n" * 50}))
    assert [row[-1] for row in page.rows if row[-1].startswith("line") and row[-2] == ""] == folded
    assert sum(attributes.get("class") == "far" for tag, attributes in page.tags if tag == "tr") == hidden


def test_the_hottest_lines_come_first_where_there_are_many():
    assert "hottest lines" not in made().html()
    row = made().ptx_line(11)
    rows = tuple(dataclasses.replace(row, source_line=n, counts={"executions": n}) for n in range(1, 12))
    html = dataclasses.replace(made(), instructions=rows).html({"kernel.cu": SOURCE})
    page = Elements(html.partition("<h2>hottest lines</h2>")[2].partition("</div>")[0].partition(">")[2])
    assert [line[-2:] for line in page.rows[1:3]] == [["kernel.cu:11", ""], ["kernel.cu:10", ""]]
    assert page.rows[8][-2:] == ["kernel.cu:4", "out[8 * threadIdx.x] = square(x);"]
    assert len(page.rows) == 9


def test_a_page_says_what_it_does_not_know():
    html = made().html()
    for note in NOT_MODELLED:
        assert note in unescape(html)
    for name in METRICS:
        assert f"<code>{name}</code>" in html
    assert "source text not found: square.h, kernel.cu" in html
    assert "checks that were off: races" in html
    assert "28 registers, spills: 16 bytes stored, 8 loaded (ptxas)" in html
    assert '<pre class="output">hello\n</pre>' in html


def test_a_page_without_lines_is_the_ptx():
    profile = made()
    rows = tuple(dataclasses.replace(row, file="", source_line=0) for row in profile.instructions)
    html = dataclasses.replace(profile, instructions=rows).html()
    assert re.findall(r"<h2>(.*?)</h2>", html) == [
        "memory",
        "other counts",
        "instruction mix",
        "PTX",
        "printed by the kernel",
        "what this does not know",
    ]
    assert not [attributes for _, attributes in Elements(html).tags if "data-place" in attributes]


def test_a_page_stands_alone():
    """It loads nothing: no address, no import, no element that would fetch."""
    html = made().html({"kernel.cu": SOURCE})
    assert not re.search(r"https?:|@import|url\(|fetch\(", html)
    tags = Elements(html).tags
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name in ("src", "href")]


def test_a_page_is_the_same_each_time():
    assert made().html() == made().html()


def test_a_page_of_a_kernel_that_did_nothing():
    empty = dataclasses.replace(made(), instructions=(), output="")
    assert Elements(empty.html()).tags
    assert "0 warp instructions" in empty.html()


# ---- the page's script, in a browser ------------------------------------------------------------------------------------

_PROBE = """<pre id="said"></pre><script>
const said = {}, ptx = document.querySelector("table.ptx");
const column = () => [...ptx.tBodies[0].rows].map(row => row.dataset.line).join(" ");
const head = key => ptx.querySelector(`th[data-key=${key}]`);
said.first = column();
head("wavefronts").click(); said.wavefronts = column(); said.sort = head("wavefronts").getAttribute("aria-sort");
head("wavefronts").click(); said.reversed = column();
head("text").click(); said.text = column(); said.marked = ptx.querySelectorAll("th[aria-sort]").length;
head("line").click(); said.line = column();
const lit = () => [...document.querySelectorAll("tr.lit")].map(row => row.querySelector("td.place").textContent).join(" ");
const shown = () => [...document.querySelectorAll("table.lines tbody tr")].filter(row => getComputedStyle(row).display !== "none")
  .map(row => row.querySelector("td.place")?.textContent ?? "fold").join(" ");
document.querySelectorAll("table.lines tr.has")[0].click(); said.lit = lit();
[...ptx.tBodies[0].rows][3].click(); said.litback = lit();
said.folded = shown(); document.querySelector("tr.fold").click(); said.unfolded = shown();
const back = () => getComputedStyle(document.body).backgroundColor;
document.documentElement.dataset.theme = "light"; said.light = back();
document.getElementById("theme").click(); said.dark = back(); said.theme = document.documentElement.dataset.theme;
const search = document.getElementById("search");
const seek = text => { search.value = text; search.dispatchEvent(new Event("input")); };
const seen = row => getComputedStyle(row).display !== "none";
const visible = table => [...document.querySelectorAll(`${table} tbody tr`)].filter(seen)
  .map(row => row.querySelector("td.place").textContent).join(" ");
document.querySelector("table.lines").classList.remove("all");
seek("MUL"); said.ptxfound = visible("table.ptx"); said.hits = document.getElementById("hits").textContent;
seek("the end"); said.found = visible("table.lines"); said.none = visible("table.ptx");
const key = name => document.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
key("Escape"); said.cleared = shown() + search.value; key("/"); said.focus = document.activeElement === search;
const text = document.querySelector("table.lines td.text"); said.wrap = getComputedStyle(text).whiteSpace;
document.getElementById("said").textContent = JSON.stringify(said);
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium to run the page's script")
def test_the_page_in_a_browser(tmp_path: Path):
    html = made().html({"kernel.cu": SOURCE + "// the end\n" * 6})
    assert html.count("</body>") == 1
    page = tmp_path / "page.html"
    page.write_text(html.replace("</body>", _PROBE))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    match = re.search(r'<pre id="said">(.+?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    said: dict[str, Any] = json.loads(unescape(match[1]))
    assert said == {
        "first": "10 11 12 13 14",
        "wavefronts": "11 10 12 13 14",
        "sort": "descending",
        "reversed": "10 12 13 14 11",
        "text": "11 10 12 14 13",  # ld, mov, mul, ret, st
        "marked": 1,
        "line": "10 11 12 13 14",
        "lit": "3 10 11",  # the line, and the instructions it was compiled to
        "litback": "4 13",
        "folded": "1 2 3 4 5 6 7 fold",
        "unfolded": "1 2 3 4 5 6 7 8 9 10 11",
        "light": "rgb(255, 255, 255)",
        "dark": "rgb(15, 19, 28)",
        "theme": "dark",
        "ptxfound": "12",
        "hits": "1 found",
        "found": "6 7 8 9 10 11",  # lines that were folded too
        "none": "",
        "cleared": "1 2 3 4 5 6 7 fold",
        "focus": True,
        "wrap": "pre-wrap",
    }
