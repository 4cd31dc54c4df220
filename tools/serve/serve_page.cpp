#include "tools/serve/serve_page.h"

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/page.h"

namespace crema {

namespace {

constexpr const char* kServeStyle = R"css(
main.serve { max-width: 760px; } .serve h1 { margin-bottom: 14px; } .serve .rows :is(td, th) { text-align: left; }
.serve .choose { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
#drop { display: flex; align-items: center; justify-content: center; min-height: 220px; margin-top: 14px; padding: 12px;
  border: 2px dashed var(--line); border-radius: 10px; color: var(--soft); text-align: center; cursor: pointer; }
#drop.over, #drop:hover, #drop:focus-visible { border-color: var(--accent); color: var(--accent); outline: none; }
#view { position: relative; display: none; } #drop.full #view { display: block; } #drop.full > span { display: none; }
#view img { display: block; max-width: 100%; max-height: 460px; border-radius: 6px; }
#marks { position: absolute; inset: 0; overflow: hidden; border-radius: 6px; pointer-events: none; }
#marks canvas { width: 100%; height: 100%; opacity: .6; image-rendering: pixelated; }
#marks div { position: absolute; border: 2px solid; border-radius: 2px; }
#marks b { position: absolute; left: -2px; bottom: 100%; padding: 0 5px; font-size: 12px; font-weight: 600; line-height: 17px; white-space: nowrap; }
#marks b.inside { top: -2px; bottom: auto; } #marks b.leftward { left: auto; right: -2px; }
#least_line { display: flex; gap: 8px; align-items: center; margin: 0 0 12px; } #least_line[hidden] { display: none; }
#least { accent-color: var(--accent); min-width: 0; } #least_line output { font-variant-numeric: tabular-nums; }
#found { display: grid; grid-template-columns: fit-content(45%) minmax(60px, 1fr) auto; gap: 8px 12px; align-items: center; margin: 0; }
#found b { font-weight: 500; overflow-wrap: anywhere; min-width: 80px; } #found b.colored { border-left: 12px solid; padding-left: 8px; }
#found b:only-child { grid-column: 1 / -1; }
#found i { display: block; height: 14px; border-radius: 4px; background: var(--accent); min-width: 2px; }
#found span { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); }
#problem { color: var(--s1); margin: 0; overflow-wrap: anywhere; } #problem:empty { display: none; }
)css";

}  // namespace

std::string serve_style() { return std::string(page_style()) + kServeStyle; }

const char* serve_script() {
  return R"js('use strict';
const drop = document.getElementById('drop'), file = document.getElementById('file');
const model = document.getElementById('model'), problem = document.getElementById('problem');
const found = document.getElementById('found'), image = drop.querySelector('img');
const note = document.getElementById('note'), title = document.getElementById('title');
const marks = document.getElementById('marks'), least = document.getElementById('least');
const titles = {classify: 'Classes', detect: 'Objects', segment: 'Mask'};
let picture = null, turn = 0, boxes = [];

const nameOf = (one) => one.name || 'class ' + one.index;
const percent = (part) => (100 * part).toFixed(part < 0.0995 ? 1 : 0) + ' %';

function element(kind, text, color) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (color) made.style.background = color;
  return made;
}

// Rows of a name, a bar and a text.
function list(rows) {
  found.replaceChildren(...rows.flatMap(({name, part, text, color}) => {
    const cell = element('div', ''), bar = element('i', '', color), label = element('b', name);
    label.classList.toggle('colored', Boolean(color));
    label.style.borderColor = color || '';
    bar.style.width = 100 * Math.min(1, Math.max(0, part)) + '%';
    cell.append(bar);
    return [label, cell, element('span', text)];
  }));
}

// Black or white, whichever is easier to read on a colour #rrggbb.
function inkOn(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 3 * red + 6 * green + blue > 1280 ? '#000' : '#fff';
}

function showClasses(classes) {
  const largest = Math.max(...classes.map((one) => one.score), 1);
  list(classes.map((one) => ({name: nameOf(one), part: one.score / largest, text: one.score.toPrecision(3)})));
}

function showBoxes() {
  const shown = boxes.filter((one) => one.score >= least.value);
  least.nextElementSibling.textContent = Number(least.value).toFixed(2);
  // The best is drawn last, on top of the others.
  marks.replaceChildren(...shown.map((one) => {
    const frame = element('div', ''), label = element('b', nameOf(one) + ' ' + one.score.toFixed(2), one.color);
    frame.style.borderColor = one.color;
    for (const [side, part] of [['left', one.left], ['top', one.top], ['right', 1 - one.right], ['bottom', 1 - one.bottom]])
      frame.style[side] = 100 * part + '%';
    label.style.color = inkOn(one.color);
    // A label is above its box and begins at its left, unless it would leave the picture there.
    label.classList.toggle('inside', one.top * image.clientHeight < 18);
    label.classList.toggle('leftward', one.left > 0.65);
    frame.append(label);
    return frame;
  }).reverse());
  list(shown.map((one) => ({name: nameOf(one), part: one.score, text: one.score.toFixed(3), color: one.color})));
  if (!shown.length) found.replaceChildren(element('b', boxes.length ? 'No object has this score.' : 'No object was found.'));
}

// Class 0 is the background, which stays as it is.
function showMask({width, height, classes, runs}) {
  const canvas = element('canvas', ''), colors = new Map(classes.map((one) => [one.index, one.color]));
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  for (let i = 0, at = 0; i < runs.length; i += 2) {
    const end = at + runs[i + 1];
    context.fillStyle = colors.get(runs[i]);
    while (at < end) {
      const x = at % width, count = Math.min(end - at, width - x);
      if (runs[i]) context.fillRect(x, Math.floor(at / width), count, 1);
      at += count;
    }
  }
  marks.replaceChildren(canvas);
  list(classes.map((one) => {
    const part = one.pixels / (width * height);
    return {name: nameOf(one), part, text: percent(part), color: one.index ? one.color : 'var(--line)'};
  }));
}

async function look() {
  const chosen = model.selectedOptions[0];
  if (!picture || !chosen) return;
  const own = ++turn, begin = performance.now(), action = chosen.dataset.action;
  problem.textContent = '';
  marks.replaceChildren();
  try {
    const answer = await fetch('/v2/models/' + encodeURIComponent(chosen.value) + '/' + action, {method: 'POST', body: picture});
    const json = await answer.json();
    await image.decode().catch(() => null);  // boxes need its size
    if (own !== turn) return;
    if (!answer.ok) throw new Error(json.error);
    title.textContent = titles[action];
    least.parentElement.hidden = action !== 'detect';
    boxes = json.boxes || [];
    if (action === 'classify') showClasses(json.classes);
    if (action === 'detect') showBoxes();
    if (action === 'segment') showMask(json);
    note.textContent = chosen.value + ', ' + Math.round(performance.now() - begin) + ' ms';
  } catch (error) {
    if (own !== turn) return;
    found.replaceChildren();
    title.textContent = 'Result';
    least.parentElement.hidden = true;
    note.textContent = '';
    problem.textContent = error instanceof TypeError ? 'The server does not answer.' : error.message;
  }
}

function take(chosen) {
  if (!chosen) return;
  picture = chosen;
  if (image.src) URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(chosen);
  drop.classList.add('full');
  look();
}

// Browsers cannot show every kind of picture that the server reads.
image.addEventListener('error', () => drop.classList.remove('full'));
file.addEventListener('change', () => { take(file.files[0]); file.value = ''; });
drop.addEventListener('click', () => file.click());
drop.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); file.click(); }
});
for (const name of ['dragenter', 'dragover', 'dragleave', 'drop']) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle('over', name === 'dragenter' || name === 'dragover');
  });
}
document.addEventListener('drop', (event) => take(event.dataTransfer.files[0]));
document.addEventListener('paste', (event) => take(event.clipboardData.files[0]));
model.addEventListener('change', look);
least.addEventListener('input', showBoxes);
)js";
}

std::string serve_page(const std::vector<const ServedModel*>& models) {
  std::string choices, rows;
  for (const ServedModel* model : models) {
    const std::string name = html_text(model->name());
    if (const PictureResult result = model->pictures().result(); result != PictureResult::none)
      choices += cat("<option data-action=\"", info_of(result).action, "\">", name, "</option>");
    std::vector<std::string> takes, gives;
    for (const BlobInfo& input : model->inputs())
      takes.push_back(cat(input.name, " ", shape_text(input.shape, model->batches())));
    for (const BlobInfo& output : model->outputs())
      gives.push_back(cat(output.name, " ", shape_text(output.shape, model->batches())));
    rows += cat("<tr><td>", name, "</td><td>", html_text(join(takes, ", ")), "</td><td>",
                html_text(join(gives, ", ")), "</td></tr>\n");
  }
  const std::string none =
      choices.empty() ? "<p class=\"note\">None of the models takes pictures.</p>" : "";
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Crema</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/crema.css\">\n"
      "<script src=\"/crema.js\" defer></script>\n</head>\n<body>\n<main class=\"serve\">\n"
      "<h1>What is in the picture?</h1>\n<section>\n",
      none, "<div class=\"choose\"><label for=\"model\">Model</label> <select id=\"model\">",
      choices,
      "</select><input type=\"file\" id=\"file\" accept=\"image/*\" hidden></div>\n<div "
      "id=\"drop\" tabindex=\"0\" role=\"button\"><div id=\"view\"><img alt=\"\"><div "
      "id=\"marks\"></div></div><span>Drop a picture here, paste one, or click to choose a "
      "file</span></div>\n</section>\n<section>\n<h2 id=\"title\">Result</h2>\n<p class=\"note\" "
      "id=\"note\"></p><p id=\"problem\" role=\"alert\"></p>\n<label id=\"least_line\" "
      "hidden>Least score <input type=\"range\" id=\"least\" min=\"0\" max=\"1\" step=\"0.01\" "
      "value=\"0.5\"><output></output></label>\n<div id=\"found\" "
      "aria-live=\"polite\"></div>\n</section>\n<section>\n<h2>Models</h2>\n<div "
      "class=\"wide\"><table "
      "class=\"rows\"><tr><th>name</th><th>inputs</th><th>outputs</th></tr>\n",
      rows, "</table></div>\n</section>\n</main>\n</body>\n</html>\n");
}

}  // namespace crema
