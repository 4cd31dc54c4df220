#include "tools/pages/page.h"

namespace crema {

const char* page_style() {
  return R"css(
:root { color-scheme: light dark; --page: #f7f6f3; --card: #ffffff; --line: #e6e3de; --text: #22201d; --soft: #6f6a64;
  --good: 43, 110, 190; --bad: 214, 96, 24; --accent: #2463b5;
  --s0: #2463b5; --s1: #c2571a; --s2: #2b8a5f; --s3: #8a4fb0; --s4: #b3397a; --s5: #8a6d00; --s6: #0f8296; --s7: #6b6560; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #161513; --card: #1f1e1b; --line: #37342f; --text: #eceae6;
  --soft: #a39d95; --good: 96, 156, 232; --bad: 236, 132, 70; --accent: #74a9ee;
  --s0: #74a9ee; --s1: #f09a62; --s2: #6ccb9f; --s3: #c394e6; --s4: #f08cc0; --s5: #d9bb4a; --s6: #5cc6d8; --s7: #b3ada6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h1 + div { margin-top: 14px; } h2 { font-size: 16px; margin: 0 0 4px; }
a { color: var(--accent); }
.note { color: var(--soft); font-size: 14px; margin: 0 0 12px; overflow-wrap: anywhere; }
.warning { border-left: 4px solid var(--s1); padding-left: 12px; margin: 8px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(124px, 1fr)); gap: 12px; margin: 20px 0 16px; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; min-width: 0; }
.tile b { display: block; font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
section { margin: 0 0 16px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 16px; margin: 0 0 16px; }
.charts section { margin: 0; }
.charts > section:first-child:nth-last-child(odd) { grid-column: 1 / -1; }
.chart { display: grid; grid-template-columns: 56px minmax(0, 1fr); margin: 10px 14px 0 0; }
.chart svg { display: block; overflow: visible; }
.chart text { fill: var(--soft); font-size: 12px; font-family: inherit; font-variant-numeric: tabular-nums; }
.y { width: 48px; height: 240px; } .y text { text-anchor: end; }
.x { grid-column: 2; width: 100%; height: 22px; } .x text { text-anchor: middle; }
.x_name { grid-column: 2; margin: 0; text-align: center; color: var(--soft); font-size: 12px; }
.plot { position: relative; height: 240px; cursor: crosshair; }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.plot .cursor { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--soft); pointer-events: none; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.curve, .dots { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.dots { stroke-width: 6; stroke-linecap: round; }
.curve.raw { opacity: .28; stroke-width: 1; } .clipped svg { overflow: hidden; }
.zoom { position: absolute; top: 0; bottom: 0; background: rgba(var(--good), .18); pointer-events: none; }
.tools { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 0 0 12px; font-size: 13px; color: var(--soft); }
.tools label { display: flex; gap: 7px; align-items: center; } .tools input[type=range] { width: 110px; accent-color: var(--accent); }
select, input[type=search] { font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--soft); border-radius: 8px; padding: 3px 8px; }
.curve.d1 { stroke-dasharray: 6 4; } .curve.d2 { stroke-dasharray: 2 4; }
.s0 { --own: var(--s0); } .s1 { --own: var(--s1); } .s2 { --own: var(--s2); } .s3 { --own: var(--s3); }
.s4 { --own: var(--s4); } .s5 { --own: var(--s5); } .s6 { --own: var(--s6); } .s7 { --own: var(--s7); }
path.curve, path.dots { stroke: var(--own); }
i[class^=s] { display: inline-block; width: 18px; height: 0; border-top: 3px solid var(--own); margin-right: 7px; vertical-align: middle; }
i.d1 { border-top-style: dashed; } i.d2 { border-top-style: dotted; }
.spark { width: 110px; height: 26px; display: block; margin-left: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13px; margin: 6px 0; }
.legend span { overflow-wrap: anywhere; }
#tip { position: fixed; z-index: 1; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 6px 10px; font-size: 13px; box-shadow: 0 3px 14px rgba(0, 0, 0, .18); max-width: 300px; }
#tip p { margin: 0; color: var(--soft); } #tip div { display: flex; gap: 8px; align-items: center; }
#tip i { flex: none; margin: 0; } #tip span { flex: 1; overflow-wrap: anywhere; } #tip b { font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: right; padding: 5px 10px; white-space: nowrap; } th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child, th.text, td.text { text-align: left; }
.rows { width: 100%; } .rows td, .rows th { border-bottom: 1px solid var(--line); } .rows tr:last-child td { border-bottom: 0; }
.rows small { color: var(--soft); display: block; }
.best { font-weight: 650; }
.sortable th { cursor: pointer; } .sortable th:hover { color: var(--accent); }
th[aria-sort]::after { content: " \2191"; } th[aria-sort=descending]::after { content: " \2193"; }
main:has(.runs) { max-width: 1500px; } .runs { font-size: 13px; } .runs th, .runs td { padding: 5px 8px; }
.runs th { white-space: normal; } .runs td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 150px; }
.runs td:first-child, .runs th:first-child, .confusion th:first-child { position: sticky; left: 0; z-index: 1; background: var(--card); }
.runs td:first-child, .runs th:first-child { left: -18px; }
tr.diverged td { color: var(--s1); }
.parallel { display: block; width: 100%; min-width: 900px; height: auto; } .parallel text { fill: var(--text); font-size: 12px; }
.parallel text.tick { fill: var(--soft); font-size: 11px; paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; } .parallel line { stroke: var(--line); }
.parallel path { fill: none; stroke: var(--own); stroke-width: 2; opacity: .75; } .parallel path:hover { stroke-width: 5; opacity: 1; }
.confusion { font-size: 13px; } .confusion td, .confusion th { padding: 4px 7px; text-align: right; border-radius: 4px; }
.confusion th:first-child { text-align: right; }
.confusion td { background: rgba(var(--own), var(--strength)); min-width: 34px; }
.confusion .right { --own: var(--good); } .confusion .wrong { --own: var(--bad); } .confusion .none { color: var(--soft); --own: var(--good); --strength: 0; }
.q0 { --strength: 0; } .q1 { --strength: .1; } .q2 { --strength: .17; } .q3 { --strength: .24; } .q4 { --strength: .31; }
.q5 { --strength: .38; } .q6 { --strength: .45; } .q7 { --strength: .52; } .q8 { --strength: .6; } .q9 { --strength: .7; }
.pictures { display: flex; flex-wrap: wrap; gap: 12px 10px; margin-top: 12px; }
.pictures img { display: block; width: 64px; image-rendering: pixelated; border-radius: 4px; border: 1px solid var(--line); }
.pictures figure { margin: 0; width: 64px; text-align: center; font-size: 13px; line-height: 1.3; font-variant-numeric: tabular-nums; }
.pictures figcaption { overflow-wrap: anywhere; } .pictures small { color: var(--soft); display: block; }
summary { cursor: pointer; font-weight: 600; } .note summary { font-weight: 400; }
pre { margin: 12px 0 0; overflow: auto; font: 13px/1.45 ui-monospace, monospace; tab-size: 2; }
.log pre { max-height: 380px; }
.drawing svg, .drawing img { display: block; max-width: 100%; max-height: 640px; height: auto; margin: 0 auto; cursor: zoom-in; }
.drawing.large { position: fixed; inset: 0; z-index: 3; overflow: auto; background: var(--page); }
.drawing.large svg, .drawing.large img { max-width: none; max-height: none; cursor: zoom-out; }
.state { border-radius: 20px; padding: 1px 10px; font-size: 13px; border: 1px solid var(--line); white-space: nowrap; }
.state.running { color: var(--s2); border-color: var(--s2); } .state.diverged, .state.silent, .state.stopped { color: var(--s1); border-color: var(--s1); }
progress { width: 160px; accent-color: var(--accent); }
.bar { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; margin: 8px 0 0; } .bar form { margin: 0; }
button { font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--soft); border-radius: 8px; padding: 4px 14px; cursor: pointer; }
button:hover { border-color: var(--accent); color: var(--accent); }
.lost { display: none; position: sticky; top: 0; z-index: 2; margin: 0; padding: 8px 24px; background: var(--s1); color: #fff; text-align: center; }
.unanswered .lost { display: block; }
@media (max-width: 560px) { main { padding: 20px 12px 48px; } .tile, section { padding: 12px; } .tile b { font-size: 19px; }
  .chart { grid-template-columns: 44px minmax(0, 1fr); margin-right: 8px; } .y { width: 38px; } h1 { font-size: 22px; }
  .confusion { font-size: 12px; } .confusion td, .confusion th { padding: 4px 3px; } .confusion td { min-width: 25px; }
  .runs td:first-child { min-width: 110px; } .runs td:first-child, .runs th:first-child { left: -12px; } }
@media print { body { background: #fff; font-size: 10pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  main { max-width: none; padding: 0; } .tools, button, input, form, .lost, progress { display: none; }
  section, .tile, figure, tr { break-inside: avoid; } h2, .note { break-after: avoid; } .runs, .runs .state { font-size: 7pt; }
  .runs td:first-child { min-width: 24mm; } .runs th, .runs td { padding: 3px 4px; } .parallel { min-width: 0; }
  details:not([open]), section:has(> details:not([open]):only-child), section:has(> .drawing) .note { display: none; }
  .charts { grid-template-columns: 1fr 1fr; } .wide, pre, .log pre { overflow: visible; max-height: none; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } .drawing svg, .drawing img { max-height: 20cm; } }
)css";
}

}  // namespace crema
