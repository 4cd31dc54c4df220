#include "tools/pages/page.h"

namespace crema {

const char* page_script() {
  return R"js(
(() => {
  // Charts: the switches above them, zoom, and the values at the pointer.
  const view = {x: "iteration", y: "auto", smooth: 0, from: null, to: null};
  const tip = document.createElement("div"), line = document.createElement("div");
  tip.id = "tip";
  line.className = "cursor";
  const element = (name, text, values) => Object.assign(document.createElement(name), {textContent: text}, values);
  const number = value => value.toLocaleString("en-US", {maximumSignificantDigits: 5});
  const short = value => Number.isInteger(value) && Math.abs(value) < 1e7 ? value.toLocaleString("en-US") : +value.toPrecision(4) + "";
  const curves = chart => [...chart.querySelectorAll(".curve:not(.raw)")];

  // [iteration, value, seconds] of each point; a value that is not finite is a gap.
  const recorded = path => path.recorded ??= (() => {
    const seconds = path.dataset.seconds?.split(" ").map(Number);
    return path.dataset.points.split(" ").map((pair, i) => [...pair.split(",").map(Number), seconds ? seconds[i] : NaN]);
  })();
  const units = {time: [1, "seconds"]};
  const x_of = (path, point) => view.x === "time" ? point[2] / units.time[0]
    : view.x === "epoch" ? point[0] / path.dataset.epoch : point[0];
  const smoothed = points => {
    if (!view.smooth) return points;
    let sum = 0, weight = 0;
    return points.map(([x, y]) => {
      if (!Number.isFinite(y)) return [x, y];
      sum = view.smooth * sum + (1 - view.smooth) * y;
      weight = view.smooth * weight + (1 - view.smooth);
      return [x, sum / weight];
    });
  };

  // Numbered, and at most a dozen: adding a step to a large number may not change it.
  const ticks = (low, high) => {
    const raw = high / 5 - low / 5, power = 10 ** Math.floor(Math.log10(raw)), unit = raw / power;
    const step = power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10), first = Math.ceil(low / step), all = new Set();
    for (let i = 0; i < 12 && (first + i) * step <= high + step * 1e-9; ++i) all.add(+((first + i) * step).toPrecision(12));
    return [...all];
  };
  const log_ticks = (low, high) => {
    const all = [], step = Math.max(1, Math.ceil((Math.log10(high) - Math.log10(low)) / 6)), first = Math.ceil(Math.log10(low) - 1e-9);
    for (let i = 0; i < 12 && 10 ** (first + i * step) <= high * 1.0001; ++i) all.push(+(10 ** (first + i * step)).toPrecision(3));
    return all.length > 1 ? all : ticks(low, high).filter(tick => tick > 0);
  };
  const svg = (name, values, text) => {
    const node = document.createElementNS(document.querySelector(".chart svg").namespaceURI, name);
    for (const key in values) node.setAttribute(key, values[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // Redraws a chart as tools/pages/charts/chart.cpp drew it at first, with the settings of the switches.
  const draw = chart => {
    const plot = chart.querySelector(".plot"), all = curves(chart).map(path => {
      const raw = recorded(path).map(point => [x_of(path, point), point[1]]).filter(([x]) => Number.isFinite(x));
      return {path, raw, points: smoothed(raw)};
    });
    let low = view.from ?? 0, high = view.to ?? 0, floor = Infinity, top = -Infinity;
    if (view.to === null) for (const {raw} of all) for (const [x] of raw) high = Math.max(high, x);
    if (view.to === null && view.x === "iteration") high = Math.max(high, +plot.dataset.end);
    if (!(high > low)) high = low + 1;
    const log = view.y === "log" || (view.y === "auto" && "log" in plot.dataset);
    for (const {points} of all) {
      for (const [x, y] of points) {
        if (x < low || x > high || !Number.isFinite(y) || (log && y <= 0)) continue;
        floor = Math.min(floor, y);
        top = Math.max(top, y);
      }
    }
    if (floor > top) [floor, top] = log ? [0.1, 1] : [0, 1];
    if (log) {
      [floor, top] = [floor / 1.1, top * 1.1];
    } else {
      const margin = top > floor ? 0.05 * (top - floor) : Math.abs(top) / 10 || 1, share = floor >= 0 && top <= 1 && top > floor;
      floor = floor >= 0 && floor < 0.3 * top ? 0 : floor - margin;
      top = share ? Math.min(1, top + margin) : top + margin;
    }
    const scale = log ? Math.log10 : y => y, across = x => 1000 * (x - low) / (high - low);
    const up = y => 240 * (scale(top) - scale(y)) / (scale(top) - scale(floor));
    const way = points => {
      let text = "", down = false;
      points.forEach(([x, y], i) => {
        const drawn = Number.isFinite(y) && !(log && y <= 0);
        if (points[i + 1]?.[0] < low || points[i - 1]?.[0] > high) return;
        if (drawn) text += (down ? "L" : "M") + across(x).toFixed(1) + " " + up(y).toFixed(1);
        down = drawn;
      });
      return text;
    };
    let few = 0;
    for (const {points} of all) few += points.length;
    for (const {path, raw, points} of all) {
      path.shown = points;
      path.setAttribute("d", way(points));
      if (path.previousElementSibling?.classList.contains("raw")) path.previousElementSibling.remove();
      if (view.smooth) path.before(svg("path", {class: path.getAttribute("class") + " raw", d: way(raw)}));
      const dots = path.nextElementSibling;
      if (dots?.classList.contains("dots"))
        dots.setAttribute("d", points.filter(([x, y]) => x >= low && x <= high && Number.isFinite(y))
          .map(([x, y]) => "M" + across(x).toFixed(1) + " " + up(y).toFixed(1) + "h0").join(""));
    }
    plot.classList.toggle("clipped", view.from !== null || view.smooth > 0);
    Object.assign(plot.dataset, {low, high, x: view.x === "time" ? units.time[1] : view.x});
    const y_ticks = log ? log_ticks(floor, top) : ticks(floor, top);
    plot.querySelector("svg").replaceChildren(
      ...y_ticks.map(tick => svg("line", {class: "grid", x1: 0, x2: "100%", y1: up(tick), y2: up(tick)})),
      svg("line", {class: "axis", x1: 0, x2: "100%", y1: 240, y2: 240}));
    chart.querySelector(".y").replaceChildren(...y_ticks.map(tick => svg("text", {x: "100%", y: up(tick) + 4}, short(tick))));
    chart.querySelector(".x").replaceChildren(...ticks(low, high).map(tick => svg("text", {x: across(tick) / 10 + "%", y: 16}, short(tick))));
    chart.querySelector(".x_name").textContent = (view.x === "time" ? "time in " + units.time[1] : view.x)
      + (log ? ", values on a logarithmic scale" : "");
  };
  const charts = () => [...document.querySelectorAll(".charts .chart")];
  const draw_all = () => {
    const seconds = Math.max(0, ...charts().flatMap(curves).map(path => recorded(path).at(-1)?.[2] || 0));
    units.time = seconds < 300 ? [1, "seconds"] : seconds < 18000 ? [60, "minutes"] : [3600, "hours"];
    charts().forEach(draw);
  };
  const set = values => { Object.assign(view, values); add_tools(); draw_all(); };

  // The switches above the first charts.
  const choice = (title, values, name) => {
    const label = element("label", title), select = element("select", "");
    for (const [value, text] of values) select.append(element("option", text, {value, selected: view[name] === value}));
    select.addEventListener("change", () => set(name === "x" ? {x: select.value, from: null, to: null} : {[name]: select.value}));
    label.append(select);
    return label;
  };
  const add_tools = () => {
    const first = document.querySelector(".charts"), all = charts().flatMap(curves);
    if (!first || !all.length) return;
    const axes = [["iteration", "iterations"]];
    if (all.every(path => path.dataset.epoch)) axes.push(["epoch", "epochs"]);
    if (all.every(path => path.dataset.seconds)) axes.push(["time", "time"]);
    const tools = element("div", "", {className: "tools"}), smooth = element("label", "smoothing");
    const range = element("input", "", {type: "range", min: 0, max: 0.99, step: 0.01, value: view.smooth});
    range.addEventListener("input", () => { view.smooth = +range.value; draw_all(); });
    smooth.append(range);
    tools.append(choice("x axis", axes, "x"), choice("y axis", [["auto", "automatic"], ["linear", "linear"], ["log", "logarithmic"]], "y"), smooth);
    if (view.from === null) {
      tools.append(element("span", "Drag across a chart to zoom in."));
    } else {
      const reset = element("button", "Show everything", {type: "button"});
      reset.addEventListener("click", () => set({from: null, to: null}));
      tools.append(reset);
    }
    // Not in the part of a live page that is replaced: someone may just be moving a switch.
    const place = first.closest("[data-part]") ?? first, old = place.previousElementSibling;
    if (old?.classList.contains("tools")) old.replaceWith(tools); else place.before(tools);
  };

  const at = (plot, event) => {
    const box = plot.getBoundingClientRect();
    return +plot.dataset.low + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (plot.dataset.high - plot.dataset.low);
  };
  const nearest = (all, x) => {
    let low = 0, high = all.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (all[middle][0] < x) low = middle; else high = middle;
    }
    return Math.abs(all[low][0] - x) <= Math.abs(all[high][0] - x) ? all[low] : all[high];
  };
  const hide = () => { tip.remove(); line.remove(); };
  let drag = null;
  const show = event => {
    const plot = event.target.closest?.(".plot");
    if (drag) {
      const share = x => 100 * (x - drag.plot.dataset.low) / (drag.plot.dataset.high - drag.plot.dataset.low);
      const [low, high] = [drag.from, at(drag.plot, event)].sort((a, b) => a - b);
      Object.assign(drag.mark.style, {left: share(low) + "%", width: share(high) - share(low) + "%"});
      drag.plot.append(drag.mark);
    }
    if (!plot) return hide();
    const x = at(plot, event), low = +plot.dataset.low, span = plot.dataset.high - low;
    const rows = curves(plot).map(path => ({path, points: (path.shown ?? recorded(path)).filter(point => Number.isFinite(point[1]))}))
      .filter(row => row.points.length).map(row => ({path: row.path, point: nearest(row.points, x)}));
    if (!rows.length) return hide();
    const found = rows.map(row => row.point[0]).reduce((a, b) => Math.abs(a - x) <= Math.abs(b - x) ? a : b);
    tip.replaceChildren(element("p", plot.dataset.x + " " + number(found)));
    for (const {path, point} of rows) {
      if (Math.abs(point[0] - found) > span / 50) continue;
      const row = element("div", ""), mark = element("i", "");
      mark.className = path.getAttribute("class").replace("curve ", "");
      row.append(mark, element("span", path.dataset.name), element("b", number(point[1])));
      tip.append(row);
    }
    line.style.left = 100 * (found - low) / span + "%";
    plot.append(line);
    document.body.append(tip);
    tip.style.left = Math.max(8, Math.min(event.clientX + 16, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(8, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)) + "px";
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", event => {
    show(event);
    const plot = event.target.closest?.(".charts .plot");
    if (!plot || event.button !== 0 || event.pointerType === "touch") return;
    drag = {plot, from: at(plot, event), mark: element("div", "", {className: "zoom"})};
    event.preventDefault();
  });
  document.addEventListener("pointerup", event => {
    if (!drag) return;
    const [from, to] = [drag.from, at(drag.plot, event)].sort((a, b) => a - b), span = drag.plot.dataset.high - drag.plot.dataset.low;
    drag.mark.remove();
    drag = null;
    if (to - from > span / 50) set({from, to});
  });
  document.addEventListener("dblclick", event => { if (event.target.closest(".charts .plot")) set({from: null, to: null}); });
  document.addEventListener("pointerleave", hide);

  // Clicking a column's title sorts the table; a live page keeps order and filter.
  const order = {};
  const value = (row, column) => row.cells[column]?.dataset.value ?? row.cells[column]?.textContent.trim() ?? "";
  const compare = (a, b) => {
    const [x, y] = [a, b].map(text => text === "" || isNaN(text) ? NaN : +text);
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return Number.isNaN(x) ? a.localeCompare(b) : x - y;
  };
  const sort = table => {
    const by = order[table.dataset.name], rows = [...table.rows].slice(1);
    if (!by) return;
    [...table.rows[0].cells].forEach((cell, i) =>
      i === by.column ? cell.setAttribute("aria-sort", by.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
    rows.sort((a, b) => {
      const [x, y] = [value(a, by.column), value(b, by.column)];
      return x === "" || y === "" ? (x === "") - (y === "") : (by.down ? -1 : 1) * compare(x, y);
    });
    table.tBodies[0].append(...rows);
  };
  const filter = () => {
    for (const box of document.querySelectorAll("input[data-filter]")) {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of document.querySelectorAll("table[data-name=" + box.dataset.filter + "] tr:not(:first-child)"))
        row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    }
  };
  document.addEventListener("input", event => { if (event.target.matches("input[data-filter]")) filter(); });
  document.addEventListener("click", event => {
    const title = event.target.closest("table.sortable th"), drawing = event.target.closest(".drawing");
    if (drawing) drawing.classList.toggle("large");
    if (!title) return;
    const name = title.closest("table").dataset.name, column = title.cellIndex;
    order[name] = {column, down: order[name]?.column === column ? !order[name].down : false};
    sort(title.closest("table"));
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") document.querySelectorAll(".drawing.large").forEach(drawing => drawing.classList.remove("large"));
  });
  document.addEventListener("submit", event => {
    const question = event.target.dataset.question;
    if (question && !confirm(question)) event.preventDefault();
  });

  const begin = () => {
    if (!document.querySelector(".tools")) add_tools();
    if (view.x !== "iteration" || view.y !== "auto" || view.smooth || view.from !== null) draw_all();
    document.querySelectorAll("table.sortable").forEach(sort);
    filter();
  };
  document.addEventListener("replaced", begin);
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", begin) : begin();
})();
)js";
}

const char* live_script() {
  return R"js(
(() => {
  const main = document.querySelector("main[data-poll]");
  const parts = () => [...main.querySelectorAll("[data-part]")];
  const replace = (place, part) => {
    const ticked = [...place.querySelectorAll("input:checked")].map(box => box.value);
    place.innerHTML = part.html;
    place.dataset.version = part.version;
    for (const box of place.querySelectorAll("input[type=checkbox]")) box.checked = ticked.includes(box.value);
    for (const log of place.querySelectorAll(".log pre")) log.scrollTop = log.scrollHeight;
  };
  const ask = async () => {
    const have = parts().map(place => place.dataset.part + ":" + place.dataset.version).join(",");
    const answer = await fetch(main.dataset.poll + (main.dataset.poll.includes("?") ? "&" : "?") + "have=" + have);
    if (!answer.ok) throw answer.status;
    const changed = await answer.json();
    for (const part of changed) {
      const place = parts().find(place => place.dataset.part === part.name);
      if (place) replace(place, part);
    }
    if (changed.length) document.dispatchEvent(new Event("replaced"));
  };
  const poll = async () => {
    let lost = false;
    if (!document.hidden) await ask().catch(() => { lost = true; });
    document.body.classList.toggle("unanswered", lost);
    setTimeout(poll, 3000);
  };
  for (const log of document.querySelectorAll(".log pre")) log.scrollTop = log.scrollHeight;
  setTimeout(poll, 3000);
})();
)js";
}

}  // namespace crema
