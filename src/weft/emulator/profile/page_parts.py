"""The style and the script of a profile's page: constants, so that the page stands alone."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1b2130; --soft: #5d6780; --line: #dfe3ec; --back: #ffffff; --panel: #f5f7fb;
  --heat: #f2994a; --bad: #c22f2f; --good: #1f7a45; --mark: #fff3d6; --bar: #4a78d0; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --ink: #dfe5f2; --soft: #97a3bd; --line: #2a3144;
  --back: #0f131c; --panel: #171d2a; --heat: #c9742a; --bad: #ff7b72; --good: #58c98a; --mark: #3a3013; --bar: #6f9bf0; } }
:root[data-theme=dark] { --ink: #dfe5f2; --soft: #97a3bd; --line: #2a3144; --back: #0f131c; --panel: #171d2a; --heat: #c9742a;
  --bad: #ff7b72; --good: #58c98a; --mark: #3a3013; --bar: #6f9bf0; color-scheme: dark; }
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px 28px 60px; max-width: 1500px; background: var(--back); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 21px; margin: 0 0 2px; } h1 code { font-size: 21px; }
h2 { font-size: 15px; margin: 30px 0 8px; }
p { margin: 2px 0; } .soft { color: var(--soft); } .warn { color: var(--bad); }
code, pre, td.text, td.place { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace;
  font-size: 12.5px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 9px; text-align: right; white-space: nowrap; vertical-align: top; }
th { font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--line); font-size: 12px; }
th.left, td.left, td.text { text-align: left; } section th:first-child, section td:first-child { padding-left: 0; }
td.place { color: var(--soft); user-select: none; }
td.text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 36ch; tab-size: 4; padding-right: 24px; }
td.bad { color: var(--bad); font-weight: 600; } td.good { color: var(--good); }
tbody tr:hover { background: var(--panel); } tr.lit, tr.lit:hover { background: var(--mark); }
.lines tbody tr.has, .hot tbody tr, .ptx tr[data-place], tr.fold { cursor: pointer; }
.lines:not(.all) tr.far, .lines.all tr.fold { display: none; } tr.fold td.text { color: var(--soft); }
.flow { display: flex; gap: 0 56px; flex-wrap: wrap; align-items: flex-start; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; max-height: 78vh; overflow-y: auto; }
.scroll thead th { position: sticky; top: 0; background: var(--panel); z-index: 1; }
.scroll table { width: 100%; } .scroll td { height: 24px; } .scroll td.text { width: 100%; }
.heat { display: block; height: 9px; min-width: 1px; background: var(--heat); border-radius: 2px; }
td.heats { width: 76px; padding: 7px 6px 2px; }
.mixbar { display: inline-block; height: 9px; background: var(--bar); border-radius: 2px; vertical-align: middle; }
th[data-key] { cursor: pointer; } th[data-key]:hover, th[aria-sort] { color: var(--ink); }
th[aria-sort=descending]::after { content: " \\25BE"; } th[aria-sort=ascending]::after { content: " \\25B4"; }
button { font: inherit; font-size: 12px; padding: 3px 10px; border: 1px solid var(--line); border-radius: 6px;
  background: var(--panel); color: var(--ink); cursor: pointer; }
#theme { float: right; }
.search { float: right; margin-right: 10px; } .search input { font: inherit; font-size: 12px; padding: 3px 8px; width: 24ch;
  border: 1px solid var(--line); border-radius: 6px; background: var(--back); color: var(--ink); }
tr.miss, .lines:not(.all) tr.far.miss { display: none; } .lines tr.far.hit { display: table-row; }
pre.output { background: var(--panel); padding: 10px 14px; border-radius: 8px; overflow-x: auto; }
details summary { cursor: pointer; color: var(--soft); } details table { margin-top: 8px; } details td { white-space: normal; }
ul { margin: 4px 0; padding-left: 20px; }
"""

SCRIPT: Final = """\
(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  const value = (row, key) => key === "text" ? row.querySelector("td.text").textContent : Number(row.dataset[key] || 0);
  for (const head of document.querySelectorAll("th[data-key]")) {
    head.addEventListener("click", () => {
      const table = head.closest("table"), body = table.tBodies[0], key = head.dataset.key;
      const first = key === "line" || key === "text" ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const th of table.querySelectorAll("th[aria-sort]")) th.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const rows = [...body.rows];
      const sign = order === "ascending" ? 1 : -1;
      rows.sort((a, b) => {
        const x = value(a, key), y = value(b, key);
        return x === y ? value(a, "line") - value(b, "line") : x < y ? -sign : sign;
      });
      body.append(...rows);
    });
  }
  for (const row of document.querySelectorAll("tr[data-place]")) {
    row.addEventListener("click", () => {
      for (const other of document.querySelectorAll("tr.lit")) other.classList.remove("lit");
      const rows = [...document.querySelectorAll(`tr[data-place="${row.dataset.place}"]`)];
      for (const other of rows) other.classList.add("lit");
      const there = row.closest(".lines") ? ".ptx" : ".lines";
      const away = rows.find(other => other.closest(there));
      if (away) away.scrollIntoView({ block: row.closest(".hot") ? "center" : "nearest" });
    });
  }
  const search = document.getElementById("search"), hits = document.getElementById("hits");
  const searched = [...document.querySelectorAll(".lines tbody tr:not(.fold), .hot tbody tr, .ptx tbody tr")];
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let found = 0;
    for (const row of searched) {
      const cells = [...row.querySelectorAll("td.place, td.text")];
      const hit = wanted !== "" && cells.some(cell => cell.textContent.toLowerCase().includes(wanted));
      row.classList.toggle("hit", hit);
      row.classList.toggle("miss", wanted !== "" && !hit);
      found += hit;
    }
    for (const fold of document.querySelectorAll("tr.fold")) fold.classList.toggle("miss", wanted !== "");
    hits.textContent = wanted === "" ? "" : `${found} found`;
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && search.value) { search.value = ""; search.dispatchEvent(new Event("input")); }
  });
  for (const fold of document.querySelectorAll("tr.fold")) {
    fold.addEventListener("click", () => fold.closest("table").classList.add("all"));
  }
})();
"""
