"""The page of a comparison: every line of the function, what differs on it, and its script in a browser."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layout_svg import loads_nothing
from weft.array import use_backend
from weft.array.comparing.check import compare
from weft.array.comparing.comparison import Comparison

SOURCE = """\
import numpy as np

UNSEEN = 1


def pipeline(image, noise):
    # <b>no comment is a tag</b>
    centred = image - 128
    half = (image * 1) // 2
    lifted = centred + 1
    level = float(np.max(image)) if image.shape else 0

    return half + lifted, noise


def other():
    return "not shown"
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    path = tmp_path_factory.mktemp("page") / "pipeline.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("pipeline", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with use_backend("reference"):
        return compare(module.pipeline, (np.array([10, 200], np.uint8), np.array([1], np.int8)), ("jax", "dali"))


class Tree(HTMLParser):
    """Checks that what opens closes, and collects the lines: class, whether open, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.lines: list[tuple[str, bool, str]] = []
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.stack.append(tag)
        given = dict(attrs)
        if (classes := given.get("class") or "").startswith("line "):
            self.lines.append((classes.removeprefix("line "), "open" in given, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.lines and "code" in self.stack:
            kind, is_open, text = self.lines[-1]
            self.lines[-1] = (kind, is_open, text + data)


def test_every_line_of_the_function_is_shown(found: Comparison) -> None:
    page = found.to_html()
    lines = Tree(page).lines
    assert loads_nothing(page)
    # uint8 - 128 is int32 in DALI, so is uint8 * 1, whose value is the same; what is added to the first differs because of it.
    assert lines == [
        ("idle", False, "def pipeline(image, noise):"),
        ("idle", False, "    # <b>no comment is a tag</b>"),
        ("dtype", True, "    centred = image - 128"),
        ("dtype", True, "    half = (image * 1) // 2"),
        ("follows", False, "    lifted = centred + 1"),
        ("exit", True, "    level = float(np.max(image)) if image.shape else 0"),
        ("idle", False, "\xa0"),
        ("follows", False, "    return half + lifted, noise"),
        ("follows", False, "returned"),
    ]


def test_what_a_line_says(found: Comparison) -> None:
    page = found.to_html()
    words = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2].partition("<script>")[0])))
    for part in (
        "pipeline: jax and dali diverge on 4 of 5 lines, of themselves on 2",
        "centred = image - 128 uint8 in jax, int32 in dali 2 B 16 B",
        "jax uint8 - 128 uint8 sub 2 B dali uint8 - 128 int32 sub 8 + 8 B uint8 in jax, int32 in dali",
        "1 of 2 elements differ, first at [0]: 138 in jax, -118 in dali; by at most 256 (1.86 relative)",
        "values leave: float() in jax and dali",
    ):
        assert part in words, part


def test_a_page_of_what_stops_and_of_no_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def stops(x):\n    return x @ x\n", namespace)
    stopped = compare(namespace["stops"], np.ones(2, np.int32), ("numpy", "dali"))
    page = stopped.to_html()
    Tree(page)
    assert "dali stops at" in page and "has no operation" in page


_PROBE = """\
<pre id="said"></pre><script>
const shown = () => [...document.querySelectorAll('.line')].filter(l => l.getClientRects().length).length;
const at = () => document.querySelector('.now')?.querySelector('code').textContent.trim() ?? '';
const key = name => document.dispatchEvent(new KeyboardEvent('keydown', {key: name}));
const said = {ticks: document.querySelectorAll('#strip i').length, all: shown()};
document.getElementById('only').click();
said.only = shown();
said.pressed = document.getElementById('only').getAttribute('aria-pressed');
document.getElementById('only').click();
said.again = shown();
key('n'); said.first = at();
key('n'); key('n'); said.third = at();
said.opened = document.querySelector('.now').open;
key('p'); said.second = at();
document.querySelectorAll('#strip i')[3].click(); said.clicked = at();
key('n'); key('n'); said.around = at();
const tops = [...document.querySelectorAll('#strip i')].map(tick => tick.getBoundingClientRect().top);
said.ordered = tops.every((top, i) => !i || top > tops[i - 1]);
said.wide = document.documentElement.scrollWidth <= window.innerWidth;
document.getElementById('said').textContent = JSON.stringify(said);
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium to run the page's script")
def test_the_page_in_a_browser(found: Comparison, tmp_path: Path) -> None:
    html = found.to_html()
    assert html.count("</body>") == 1
    page = tmp_path / "page.html"
    page.write_text(html.replace("</body>", _PROBE))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    match = re.search(r'<pre id="said">(.+?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    assert json.loads(unescape(match[1])) == {
        "ticks": 6,
        "all": 9,
        "only": 6,
        "pressed": "true",
        "again": 9,
        "first": "centred = image - 128",
        "third": "lifted = centred + 1",
        "opened": True,
        "second": "half = (image * 1) // 2",
        "clicked": "level = float(np.max(image)) if image.shape else 0",
        "around": "returned",
        "ordered": True,
        "wide": True,
    }
