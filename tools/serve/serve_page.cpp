#include "tools/serve/serve_page.h"

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/page.h"

namespace crema {

namespace {

constexpr const char* kServeStyle = R"css(
main.serve { max-width: 760px; }
.serve .choose { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
#drop { display: flex; align-items: center; justify-content: center; min-height: 220px; margin-top: 14px; padding: 12px;
  border: 2px dashed var(--line); border-radius: 10px; color: var(--soft); text-align: center; cursor: pointer; }
#drop.over, #drop:hover, #drop:focus-visible { border-color: var(--accent); color: var(--accent); outline: none; }
#drop img { max-width: 100%; max-height: 320px; border-radius: 6px; }
#drop img:not([src]) { display: none; } #drop img[src] + span { display: none; }
#classes { display: grid; grid-template-columns: minmax(80px, auto) 1fr auto; gap: 8px 12px; align-items: center; margin: 0; }
#classes b { font-weight: 500; overflow-wrap: anywhere; } #classes i { display: block; height: 14px; border-radius: 4px; background: var(--accent); min-width: 2px; }
#classes span { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); }
#problem { color: var(--s1); margin: 0; overflow-wrap: anywhere; } #problem:empty { display: none; }
)css";

}  // namespace

std::string serve_style() { return std::string(page_style()) + kServeStyle; }

const char* serve_script() {
  return R"js('use strict';
const drop = document.getElementById('drop'), file = document.getElementById('file');
const model = document.getElementById('model'), problem = document.getElementById('problem');
const classes = document.getElementById('classes'), image = drop.querySelector('img');
const note = document.getElementById('note');
let picture = null, turn = 0;

function show(list) {
  const largest = Math.max(...list.map((one) => one.score), 1e-9);
  classes.replaceChildren(...list.flatMap((one) => {
    const name = document.createElement('b'), cell = document.createElement('div');
    const bar = document.createElement('i'), score = document.createElement('span');
    name.textContent = one.name || 'class ' + one.index;
    bar.style.width = Math.max(0, 100 * one.score / Math.max(largest, 1)) + '%';
    score.textContent = one.score.toPrecision(3);
    cell.append(bar);
    return [name, cell, score];
  }));
}

async function classify() {
  if (!picture || !model.value) return;
  const own = ++turn, begin = performance.now();
  problem.textContent = '';
  try {
    const answer = await fetch('/v2/models/' + encodeURIComponent(model.value) + '/classify?top=5',
                               {method: 'POST', body: picture});
    const json = await answer.json();
    if (own !== turn) return;
    if (!answer.ok) throw new Error(json.error);
    show(json.classes);
    note.textContent = model.value + ', ' + Math.round(performance.now() - begin) + ' ms';
  } catch (error) {
    if (own !== turn) return;
    classes.replaceChildren();
    note.textContent = '';
    problem.textContent = error instanceof TypeError ? 'The server does not answer.' : error.message;
  }
}

function take(chosen) {
  if (!chosen) return;
  picture = chosen;
  if (image.src) URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(chosen);
  classify();
}

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
model.addEventListener('change', classify);
)js";
}

std::string serve_page(const std::vector<const ServedModel*>& models) {
  std::string choices, rows;
  for (const ServedModel* model : models) {
    const std::string name = html_text(model->name());
    if (model->takes_pictures()) choices += cat("<option>", name, "</option>");
    std::vector<std::string> takes, gives;
    for (const BlobInfo& input : model->inputs())
      takes.push_back(cat(input.name, " ", shape_text(input.shape, model->batches())));
    for (const BlobInfo& output : model->outputs())
      gives.push_back(cat(output.name, " ", shape_text(output.shape, model->batches())));
    rows += cat("<tr><td>", name, "</td><td>", html_text(join(takes, ", ")), "</td><td>",
                html_text(join(gives, ", ")), "</td></tr>\n");
  }
  const std::string none =
      choices.empty() ? "<p class=\"note\">None of the models classifies pictures.</p>" : "";
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Crema</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/crema.css\">\n"
      "<script src=\"/crema.js\" defer></script>\n</head>\n<body>\n<main class=\"serve\">\n"
      "<h1>What is in the picture?</h1>\n<section>\n",
      none, "<div class=\"choose\"><label for=\"model\">Model</label> <select id=\"model\">",
      choices,
      "</select><input type=\"file\" id=\"file\" accept=\"image/*\" hidden></div>\n<div "
      "id=\"drop\" tabindex=\"0\" role=\"button\"><img alt=\"\"><span>Drop a picture here, paste "
      "one, or click to choose a file</span></div>\n</section>\n<section>\n<h2>Classes</h2>\n<p "
      "class=\"note\" id=\"note\"></p><p id=\"problem\" role=\"alert\"></p>\n<div "
      "id=\"classes\" aria-live=\"polite\"></div>\n</section>\n<section>\n<h2>Models</h2>\n<div "
      "class=\"wide\"><table "
      "class=\"rows\"><tr><th>name</th><th>inputs</th><th>outputs</th></tr>\n",
      rows, "</table></div>\n</section>\n</main>\n</body>\n</html>\n");
}

}  // namespace crema
