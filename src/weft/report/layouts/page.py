"""The grid as HTML: the same drawing, in which the element under the pointer shows its holders and their other elements are
highlighted.

The page has the positions of the panels and the layout's columns. The script finds the element by division and its holders by
XOR, so cells need no handlers of their own. Without scripts (a notebook's preview) the drawing remains. The page loads nothing.
"""

from __future__ import annotations

import json
from html import escape
from typing import Final

from weft.layout import LinearLayout
from weft.report.layouts.grid import draw_grid, grid_layers, heading
from weft.report.layouts.held import Held
from weft.report.layouts.svg import MARGIN, Svg

_NOTEBOOK: Final = 1 << 14
"""Elements of the largest tensor that notebooks draw: 128 x 128, half a megabyte."""

_STYLE: Final = """\
h1.weft-layout{display:block;font-size:17px;font-weight:bold;padding:0 16px}
.weft-layout{position:relative;display:inline-block;vertical-align:top;
font:13px ui-monospace,'DejaVu Sans Mono',Consolas,monospace;color:#111827}
.weft-layout .weft-says{min-height:3.4em;padding:6px 16px;white-space:pre-wrap;max-width:100ch;line-height:1.45}
.weft-layout .weft-says b{font-weight:bold}
.weft-layout .weft-keys{padding:8px 16px 0}
.weft-layout button{font:inherit;color:inherit;background:none;border:1px solid #9ca3af;border-radius:4px;padding:1px 9px;
margin-right:5px;cursor:pointer}
.weft-layout button[aria-pressed=true]{background:#111827;color:#fff;border-color:#111827}
.weft-layout svg.weft{display:block;max-width:none}
.weft-layout .weft-shade{fill:#fff;fill-opacity:.72;fill-rule:evenodd;pointer-events:none}
.weft-layout .weft-lit{fill:none;stroke:#111827;stroke-width:2;pointer-events:none}
.weft-layout .weft-under{fill:none;stroke:#dc2626;stroke-width:3;pointer-events:none}
@media (prefers-color-scheme:dark){.weft-layout{color:#f3f4f6}
.weft-layout .weft-shade{fill:#0b0f19}.weft-layout .weft-lit{stroke:#f9fafb}
.weft-layout button[aria-pressed=true]{background:#f3f4f6;color:#111827;border-color:#f3f4f6}}
"""

_SCRIPT: Final = """\
(() => {
for (const root of document.querySelectorAll('.weft-layout:not([data-ready])')) {
  root.dataset.ready = '1';
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const svg = root.querySelector('svg'), says = root.querySelector('.weft-says'), idle = says.textContent;
  const holders = Array.from({length: data.elements}, () => []);
  const threads = new Map();
  const fields = [];
  let shift = 0;
  for (const [name, columns] of data.inputs) {
    fields.push([name, shift, (1 << columns.length) - 1]);
    shift += columns.length;
  }
  const flat = data.inputs.flatMap(([, columns]) => columns);
  const at = (place, name) => { const f = fields.find(f => f[0] === name); return f ? place >> f[1] & f[2] : 0; };
  const thread = place => data.thread.map(name => at(place, name)).join();
  let element = 0;
  for (let place = 0; place < 1 << shift; place++) {
    if (place) element ^= flat[31 - Math.clz32(place & -place)];
    const gray = place ^ place >> 1;
    holders[element].push(gray);
    const key = thread(gray);
    if (!threads.has(key)) threads.set(key, new Set());
    threads.get(key).add(element);
  }
  holders.forEach(places => places.sort((a, b) => a - b));
  const layer = svg.appendChild(document.createElementNS(svg.namespaceURI, 'g'));
  const coordinates = flat => {
    const found = [];
    for (const size of [...data.shape].reverse()) { found.unshift(flat % size); flat = Math.floor(flat / size); }
    return `(${found.join(', ')})`;
  };
  const boxes = chosen => {
    let d = '';
    for (const p of data.panels) for (let r = 0; r < p.rows; r++) for (let c = 0; c < p.columns; c++)
      if (chosen.has(p.base + r * p.stride + c)) d += `M${p.x + c * p.cell} ${p.y + r * p.cell}h${p.cell}v${p.cell}h${-p.cell}z`;
    return d;
  };
  const draw = (classes, d) => {
    const path = layer.appendChild(document.createElementNS(svg.namespaceURI, 'path'));
    path.setAttribute('class', classes);
    path.setAttribute('d', d);
  };
  const clear = () => { layer.replaceChildren(); says.textContent = idle; last = null; };
  let last = null;
  const show = (panel, r, c) => {
    const under = panel.base + r * panel.stride + c;
    if (under === last) return;
    clear();
    last = under;
    const places = holders[under];
    if (!places.length) { says.textContent = `element ${coordinates(under)}: no thread holds it`; return; }
    const mine = new Set();
    for (const key of new Set(places.map(thread))) for (const other of threads.get(key)) mine.add(other);
    const all = data.panels.map(p => `M${p.x} ${p.y}h${p.columns * p.cell}v${p.rows * p.cell}h${-p.columns * p.cell}z`).join('');
    const lit = boxes(mine);
    draw('weft-shade', all + lit);
    draw('weft-lit', lit);
    draw('weft-under', boxes(new Set([under])));
    const name = place => fields.map(([name, s, m]) => `${name} ${place >> s & m}`).join(', ');
    const some = places.slice(0, 4).map(name).join('; ') + (places.length > 4 ? `; and ${places.length - 4} more` : '');
    const first = data.thread.filter(n => fields.some(f => f[0] === n && f[2])).map(n => `${n} ${at(places[0], n)}`).join(', ');
    const list = [...threads.get(thread(places[0]))].sort((a, b) => a - b).slice(0, 8).map(coordinates).join(' ');
    says.textContent = '';
    const bold = says.appendChild(document.createElement('b'));
    bold.textContent = `element ${coordinates(under)}`;
    says.append(`: ${some}\\n${first || 'the thread'} holds ${threads.get(thread(places[0])).size}: ${list}` +
      (threads.get(thread(places[0])).size > 8 ? ' ...' : ''));
  };
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    const x = (event.clientX - box.left) * view.width / box.width, y = (event.clientY - box.top) * view.height / box.height;
    for (const p of data.panels) {
      const c = Math.floor((x - p.x) / p.cell), r = Math.floor((y - p.y) / p.cell);
      if (r >= 0 && c >= 0 && r < p.rows && c < p.columns) return show(p, r, c);
    }
    clear();
  });
  svg.addEventListener('pointerleave', clear);
  const buttons = root.querySelectorAll('button');
  const choose = by => {
    for (const group of svg.querySelectorAll('g.by')) group.style.display = group.dataset.by === by ? '' : 'none';
    for (const button of buttons) button.setAttribute('aria-pressed', button.dataset.by === by);
  };
  for (const button of buttons) button.addEventListener('click', () => choose(button.dataset.by));
}
})();
"""


def grid_fragment(layout: LinearLayout, by: str | None = None, *, bits: int = 32, title: str | None = None) -> str:
    """The picture as a piece of a page, as notebooks take it; see `grid_page`."""
    held = Held(layout, bits)
    chosen = held.by(by)
    svg = Svg()
    drawn = draw_grid(svg, held, chosen, MARGIN, MARGIN, title, grid_layers(held))
    data = {
        "shape": layout.shape,
        "elements": 1 << layout.out_bits,
        "inputs": [[name, list(columns)] for name, columns in layout.inputs],
        "thread": [name for name in ("block", "warp", held.main) if name in layout.in_dims],
        "panels": [
            {"x": d.x, "y": d.y, "cell": d.cell, "rows": d.panel.rows, "columns": d.panel.columns}
            | {"base": d.panel.base, "stride": d.panel.stride}
            for d in drawn
        ],
    }
    buttons = "".join(
        f'<button type="button" data-by="{escape(key)}" aria-pressed="{str(key == chosen).lower()}">{escape(key)}</button>'
        for key in grid_layers(held)
    )
    return (
        f'<div class="weft-layout">\n<style>\n{_STYLE}</style>\n<div class="weft-keys">{buttons}</div>\n'
        + svg.document(title or heading(held, chosen))
        + '<div class="weft-says">point at an element: who holds it, and what else that thread holds</div>\n'
        + f'<script type="application/json">{json.dumps(data)}</script>\n<script>\n{_SCRIPT}</script>\n</div>\n'
    )


def grid_page(layout: LinearLayout, by: str | None = None, *, bits: int = 32, title: str | None = None) -> str:
    """The picture as a page of its own: under the pointer an element and its holders, buttons to colour by another dimension."""
    held = Held(layout, bits)
    name = title or heading(held, held.by(by))
    return page(name, grid_fragment(layout, by, bits=bits, title=title))


def svg_page(title: str, svg: str) -> str:
    """A picture as a page of its own."""
    return page(title, svg)


def notebook_html(layout: LinearLayout) -> str | None:
    """What a notebook shows of a layout; None, so that it shows the text, where that would make the notebook large."""
    if layout.out_bits > _NOTEBOOK.bit_length() - 1 or len(layout.all_columns) > _NOTEBOOK.bit_length() + 3:
        return None
    return grid_fragment(layout)


def page(title: str, body: str) -> str:
    """An HTML page with a body, light or dark as its reader prefers."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>body{{margin:0}}@media (prefers-color-scheme:dark){{body{{background:#0b0f19}}}}"
        f"</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
