"""The style and the script of `weft.report.comparison_page`."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root{--ink:#111827;--faint:#6b7280;--rule:#e5e7eb;--paper:#fff;--head:#f9fafb;
--value:#dc2626;--dtype:#d97706;--refused:#9f1239;--control:#7c3aed;--exit:#db2777;--meaning:#0891b2;--follows:#9ca3af}
@media (prefers-color-scheme:dark){:root{--ink:#f3f4f6;--faint:#9ca3af;--rule:#1f2937;--paper:#0f131c;--head:#151b27;
--value:#f87171;--dtype:#fbbf24;--refused:#fb7185;--control:#a78bfa;--exit:#f472b6;--meaning:#22d3ee;--follows:#6b7280}}
body{margin:0;background:var(--paper);color:var(--ink);font:14px/1.5 system-ui,'DejaVu Sans',sans-serif}
main{padding:0 34px 40px 16px}
header{padding:14px 0 4px}
h1{font-size:18px;margin:0 0 8px}h2{font-size:14px;margin:18px 0 4px}
code,.number,.types,table,.row span{font-family:ui-monospace,'DejaVu Sans Mono',Consolas,monospace;font-size:13px}
table{border-collapse:collapse}td,th{padding:1px 14px 1px 0;text-align:left;font-weight:normal;vertical-align:top}
.totals td,.totals tr:first-child th{text-align:right;color:var(--faint)}.totals td:nth-of-type(3){color:var(--ink)}
.legend,.keys{margin:6px 0;color:var(--faint)}
.legend>span{white-space:nowrap;margin-right:10px}
.mark{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px;background:var(--colour)}
button{font:inherit;color:inherit;background:none;border:1px solid var(--follows);border-radius:4px;padding:0 8px;cursor:pointer}
button[aria-pressed=true]{background:var(--ink);color:var(--paper)}
kbd{border:1px solid var(--follows);border-radius:3px;padding:0 4px;font-size:12px;margin-left:10px}
section{margin-top:10px;border:1px solid var(--rule);border-radius:6px}
h2{padding:0 10px}
.row{display:grid;grid-template-columns:2.6em minmax(14em,2fr) minmax(8em,1fr) repeat(var(--systems),5.6em);gap:0 10px;
align-items:baseline;padding:0 10px 0 4px}
.row>span:nth-child(n+4){text-align:right;color:var(--faint)}
.head{position:sticky;top:0;background:var(--head);border-bottom:1px solid var(--rule);padding-left:8px}
.number{color:var(--faint);text-align:right;user-select:none}
.types{color:var(--colour,var(--faint));text-align:right}
.row code{white-space:pre-wrap}
.line{border-left:4px solid var(--colour,transparent);scroll-margin-top:3em}
.idle code{color:var(--faint)}
summary{cursor:pointer;list-style:none}summary::-webkit-details-marker{display:none}
summary:hover,summary:focus-visible{background:var(--head);outline:none}
details[open]>summary{background:var(--head)}
.inside{padding:4px 10px 8px calc(2.6em + 14px)}
.inside p,p.exit{margin:1px 0 5px;color:var(--colour,var(--ink))}
p.exit{padding-left:calc(2.6em + 14px)}
.value{--colour:var(--value)}.dtype{--colour:var(--dtype)}.refused{--colour:var(--refused)}.control{--colour:var(--control)}
.exit{--colour:var(--exit)}.meaning{--colour:var(--meaning)}.follows{--colour:var(--follows)}.same{--colour:transparent}
.same .types{color:var(--faint)}.inside table{color:var(--ink)}
.stop{color:var(--refused)}
.only .idle,.only .same{display:none}
.now>summary{box-shadow:inset 0 0 0 2px var(--colour)}
#strip{position:fixed;right:6px;top:8px;bottom:8px;width:14px;background:var(--head);border-radius:4px}
#strip i{cursor:pointer;position:absolute;left:1px;right:1px;height:4px;border-radius:2px;background:var(--colour)}
@media print{#strip,.keys{display:none}}
"""

SCRIPT: Final = """\
(() => {
const lines = [...document.querySelectorAll('.line')];
const marks = lines.filter(line => !/\\b(idle|same)\\b/.test(line.className));
const strip = document.getElementById('strip');
let now = -1;
const go = at => {
  if (!marks.length) return;
  marks[now]?.classList.remove('now');
  now = (at + marks.length) % marks.length;
  const line = marks[now];
  line.classList.add('now');
  line.open = true;
  line.scrollIntoView({block: 'center'});
};
marks.forEach((line, i) => {
  const tick = strip.appendChild(document.createElement('i'));
  tick.className = line.className.replace(/\\bline\\b/, '');
  tick.style.top = `${100 * lines.indexOf(line) / Math.max(lines.length, 1)}%`;
  tick.title = line.querySelector('code').textContent.trim();
  tick.addEventListener('click', () => go(i));
});
const only = document.getElementById('only');
only.setAttribute('aria-pressed', 'false');
only.addEventListener('click', () => {
  only.setAttribute('aria-pressed', document.body.classList.toggle('only'));
});
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'n') go(now + 1);
  if (event.key === 'p') go(now < 0 ? -1 : now - 1);
});
})();
"""
