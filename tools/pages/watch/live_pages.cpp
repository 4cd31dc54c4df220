#include "tools/pages/watch/live_pages.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "data/databases/class_names.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/report/report_page.h"
#include "tools/pages/runs/run_curves.h"
#include "tools/pages/runs/run_file.h"
#include "tools/pages/runs/run_sections.h"
#include "tools/pages/runs/run_state.h"
#include "tools/pages/runs/run_texts.h"

namespace crema {

namespace {

constexpr size_t kLogBytes = 16 << 10, kMostSettings = 5;

PageRun page_run(const WatchedRun& run) {
  return {.name = run.name, .run = run.run, .folder = run.folder};
}

RunState state_now(const WatchedRun& run) { return state_of(page_run(run), std::time(nullptr)); }

// "/?run=NAME&run=NAME&token=...", not yet escaped for HTML.
std::string address_of(const std::string& path, const std::vector<std::string>& names,
                       const std::string& token) {
  std::string query;
  for (const std::string& name : names) query += "&run=" + url_text(name);
  if (!token.empty()) query += "&token=" + url_text(token);
  return query.empty() ? path : path + "?" + query.substr(1);
}

std::string link(const std::string& address, const std::string& text) {
  return cat("<a href=\"", html_text(address), "\">", html_text(text), "</a>");
}

std::string hidden(const char* name, const std::string& value) {
  return cat("<input type=\"hidden\" name=\"", name, "\" value=\"", html_text(value), "\">");
}

// The cells before and after the settings and the state, which change by themselves.
std::vector<PagePart> row_of(const WatchedRun& run, const std::string& token) {
  const RunFigures figures = figures_of(*run.run);
  std::string tests;
  for (const TestFigure& test : main_tests(figures)) {
    if (tests.size() > 400) break;
    tests += cat(tests.empty() ? "" : "<br>", html_text(test.name), " ",
                 html_text(test_value(test.name, test.last)));
  }
  return {{"before", cat("<td><input type=\"checkbox\" name=\"run\" value=\"", html_text(run.name),
                         "\" aria-label=\"compare ", html_text(run.name), "\"> ",
                         link(address_of("/", {run.name}, token), run.name), "</td><td>",
                         sparkline(loss_of(*run.run)), "</td><td data-value=\"",
                         html_text(run.run->identity("started")), "\">",
                         html_text(started_text(*run.run, std::time(nullptr))), "</td>")},
          {"after",
           cat("<td data-value=\"", figures.iterations, "\">",
               short_number(static_cast<double>(figures.iterations)), "</td><td data-value=\"",
               figures.seconds, "\">", html_text(duration(figures.seconds)), "</td><td>",
               speed_text(figures.speed), "</td><td data-value=\"", figures.loss, "\">",
               html_text(short_number(figures.loss)), "</td><td data-value=\"",
               figures.tests.empty() ? "" : cat(figures.tests[0].last), "\">", tests, "</td>")}};
}

// max_iter from the solver's plain text, or from its comment on max_epoch; 0: unknown.
int64_t iterations_of(const std::string& solver) {
  for (const std::string& line : split(solver, '\n')) {
    for (const std::string start : {"max_iter:", "# max_iter:"}) {
      if (starts_with(line, start)) return std::strtoll(line.c_str() + start.size(), nullptr, 10);
    }
  }
  return 0;
}

std::string progress(const WatchedRun& run, bool running) {
  const RunFigures figures = figures_of(*run.run);
  const int64_t done = figures.iterations, all = iterations_of(texts_in(run.folder).solver);
  std::string text = cat("iteration ", short_number(static_cast<double>(done)));
  if (all < done || all == 0) return "<span>" + text + "</span>";
  text = cat("<progress value=\"", done, "\" max=\"", all, "\"></progress><span>", text, " of ",
             short_number(static_cast<double>(all)));
  if (running && std::isfinite(figures.speed) && figures.speed > 0 && all > done)
    text += cat(", about ", duration(static_cast<double>(all - done) / figures.speed), " left");
  return text + "</span>";
}

std::string state_part(const WatchedRun& run, const std::string& token) {
  const RunState state = state_now(run);
  std::string html = cat("<div class=\"bar\">", state_pill(state), progress(run, state.may_stop));
  const bool can_be_asked = state.may_stop && is_run_file(run.folder + "/run.json");
  if (can_be_asked && is_run_file(run.folder + "/stop")) {
    html += "<span class=\"note\">will stop with a snapshot</span>";
  } else if (can_be_asked && !token.empty()) {
    html += cat("<form method=\"post\" action=\"/stop\" data-question=\"Stop ", html_text(run.name),
                " now? It writes a snapshot first.\">", hidden("run", run.name),
                hidden("token", token), "<button>Stop with a snapshot</button></form>");
  }
  return html + "</div>";
}

std::string log_part(const WatchedRun& run) {
  std::string lines;
  const std::string log = end_of_run_file(run.folder + "/train.log", kLogBytes);
  for (const std::string& line : split(trim(log), '\n')) lines += html_text(line) + "\n";
  return lines.empty() ? ""
                       : section("Log", "", "<div class=\"log\"><pre>" + lines + "</pre></div>");
}

}  // namespace

std::string url_text(const std::string& text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : std::string{'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

bool LivePages::chosen(const std::vector<std::string>& names,
                       std::vector<const WatchedRun*>* chosen) {
  runs_.refresh();
  list_ = runs_.runs();
  if (rendered_.size() > 4 * list_.size() + 100) rendered_.clear();  // of runs that are gone
  for (const std::string& name : names) {
    const WatchedRun* run = WatchedRuns::find(list_, name);
    if (!run) return false;
    if (std::find(chosen->begin(), chosen->end(), run) == chosen->end()) chosen->push_back(run);
  }
  return true;
}

void LivePages::read_settings() {
  std::string key;
  for (const WatchedRun& run : list_) key += run.folder + "\n";
  if (key == settings_key_) return;
  settings_key_ = key;
  std::vector<RunTexts> texts;
  for (const WatchedRun& run : list_) texts.push_back(texts_in(run.folder));
  settings_ = differing_settings(texts);
  if (settings_.size() > kMostSettings) settings_.resize(kMostSettings);
}

std::vector<PagePart> LivePages::list_parts(const std::string& token) {
  read_settings();
  std::string rows;
  for (size_t i = 0; i < list_.size(); ++i) {
    const WatchedRun& run = list_[i];
    Rendered& row = rendered_["row of " + run.name];
    const std::string key = cat(run.version, " ", token);
    if (row.key != key) row = {key, row_of(run, token)};
    const RunState state = state_now(run);
    rows += cat("<tr class=\"", state.word, "\">", row.parts[0].html);
    for (const SettingColumn& column : settings_)
      rows += cat("<td>", html_text(column.values[i]), "</td>");
    rows += cat("<td>", state_pill(state), "</td>", row.parts[1].html, "</tr>\n");
  }
  if (rows.empty()) {
    rows = cat("<section><p class=\"note\">There is no run in ", html_text(runs_.folder()),
               " yet. `crema train -run` makes one, and this page then shows it.</p></section>");
  } else {
    std::string titles = "<th>run</th><th>loss</th><th>started</th>";
    for (const SettingColumn& column : settings_)
      titles += "<th>" + html_text(column.name) + "</th>";
    titles +=
        "<th>state</th><th>iterations</th><th>time</th><th>iterations/s</th><th>training "
        "loss</th><th>last test</th>";
    rows = cat("<form method=\"get\" action=\"/\">", token.empty() ? "" : hidden("token", token),
               "<section class=\"wide\"><table class=\"rows runs sortable\" "
               "data-name=\"runs\"><tr>",
               titles, "</tr>\n", rows,
               "</table></section><button>Compare the ticked runs</button></form>");
  }
  return {{"runs", warnings_of(runs_.errors()) + rows}};
}

std::vector<PagePart> LivePages::run_parts(const WatchedRun& run, const std::string& token) {
  Rendered& own = rendered_[run.name];
  const std::string key = cat(run.version, " ", changed_in_run(run.folder + "/pictures"), " ",
                              changed_in_run(cat(run.folder, "/", kClassNamesFile)));
  if (own.key != key) {
    PageRun page = page_run(run);
    std::string problem;
    try {
      page.classes =
          class_names_of_run(*run.run, run.folder, "", classes_of_confusion(*run.run, run.folder));
    } catch (const Error& error) {  // the rest of the page is right without them
      problem = error.what();
    }
    page.pictures = read_pictures(run.folder, page.classes);
    own = {key, parts_of({page}, {})};
    if (!problem.empty()) own.parts.insert(own.parts.begin(), {"names", warnings_of({problem})});
  }
  std::vector<PagePart> parts = own.parts;
  parts.insert(parts.begin(), {{"state", state_part(run, token)},
                               {"error", run.error.empty() ? "" : warnings_of({run.error})}});
  parts.push_back({"log", log_part(run)});
  return parts;
}

std::vector<PagePart> LivePages::compared_parts(const std::vector<const WatchedRun*>& runs,
                                                const std::string& token) {
  std::vector<PageRun> pages;
  std::vector<RunState> states;
  std::string links;
  for (const WatchedRun* run : runs) {
    pages.push_back(page_run(*run));
    pages.back().texts = texts_in(run->folder);
    states.push_back(state_now(*run));
    links += link(address_of("/", {run->name}, token), run->name) + " ";
  }
  std::vector<PagePart> parts = parts_of(pages, states);
  parts.push_back({"links", "<p class=\"bar\">" + links + "</p>"});
  return parts;
}

bool LivePages::parts(const Question& question, std::vector<PagePart>* parts) {
  std::vector<const WatchedRun*> runs;
  if (!chosen(question.names, &runs)) return false;
  *parts = runs.empty()       ? list_parts(question.token)
           : runs.size() == 1 ? run_parts(*runs[0], question.token)
                              : compared_parts(runs, question.token);
  return true;
}

bool LivePages::page(const Question& question, std::string* html) {
  std::vector<PagePart> now;
  if (!parts(question, &now)) return false;
  const auto& names = question.names;
  const std::string title = names.empty()       ? "Runs in " + runs_.folder()
                            : names.size() == 1 ? names[0]
                                                : cat(names.size(), " runs compared");
  std::string head, tail;
  if (!names.empty())
    head = cat("<p class=\"note\">", link(address_of("/", {}, question.token), "All runs"), "</p>");
  head += cat("<h1>", html_text(title), "</h1>\n");
  if (names.empty() && list_.size() > 1)
    head +=
        "<p><input type=\"search\" data-filter=\"runs\" placeholder=\"Filter the runs\" "
        "aria-label=\"Filter the runs\"></p>\n";
  if (names.size() == 1) {
    const WatchedRun& run = *WatchedRuns::find(list_, names[0]);
    head += cat("<p class=\"note\">", html_text(described(*run.run)), "</p>");
    const RunTexts texts = texts_in(run.folder);
    if (!texts.net_file.empty()) {
      tail = drawing_section(
          cat("<img alt=\"the net\" src=\"", html_text(address_of("/net.svg", names, "")), "\">"));
    }
    tail += folded_text("Solver", texts.solver) + folded_text("Net as text", texts.net);
  }
  *html =
      served_page(title, head + placed(now) + tail, address_of("/parts", names, question.token));
  return true;
}

std::string LivePages::folder_of_run(const std::string& name) {
  std::vector<const WatchedRun*> runs;
  return chosen({name}, &runs) ? runs[0]->folder : "";
}

LivePages::Stop LivePages::stop(const std::string& name) {
  std::vector<const WatchedRun*> runs;
  if (!chosen({name}, &runs)) return Stop::no_run;
  if (!is_run_file(runs[0]->folder + "/run.json")) return Stop::no_folder;
  if (!state_now(*runs[0]).may_stop) return Stop::over;
  make_run_file(runs[0]->folder + "/stop");
  return Stop::asked;
}

}  // namespace crema
