#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/charts/parallel_chart.h"
#include "tools/pages/page.h"
#include "tools/pages/runs/run_curves.h"
#include "tools/pages/runs/run_sections.h"
#include "tools/pages/runs/run_settings.h"

namespace crema {

namespace {

constexpr size_t kMostTestColumns = 5;

// `value`: the sort key of the column; "": its text.
std::string cell(const std::string& html, const std::string& value = "") {
  return value.empty() ? "<td>" + html + "</td>"
                       : cat("<td data-value=\"", html_text(value), "\">", html, "</td>");
}

std::vector<SettingColumn> settings_of(const std::vector<PageRun>& runs) {
  std::vector<RunTexts> texts;
  for (const PageRun& run : runs) texts.push_back(run.texts);
  return differing_settings(texts);
}

double last_of(const std::vector<TestFigure>& tests, const std::string& name) {
  for (const TestFigure& test : tests) {
    if (test.name == name) return test.last;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The best first, by the last value of the first test output; those without one at the end.
std::vector<size_t> order_of(const std::vector<std::vector<TestFigure>>& tests,
                             const std::vector<std::string>& columns) {
  std::vector<size_t> order(tests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (columns.empty()) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const double value = last_of(tests[a], columns[0]), than = last_of(tests[b], columns[0]);
    return is_better(columns[0], value, than);
  });
  return order;
}

// Which settings led to which result: useful from three runs on.
std::string parallel_section(const std::vector<PageRun>& runs,
                             const std::vector<SettingColumn>& settings,
                             const std::vector<std::vector<TestFigure>>& tests,
                             const std::vector<std::string>& columns) {
  if (runs.size() < 3 || settings.empty() || columns.empty()) return "";
  std::vector<std::string> names;
  std::vector<ParallelAxis> axes;
  for (const SettingColumn& column : settings) axes.push_back({column.name, column.values});
  ParallelAxis score{columns[0], {}};
  for (size_t i = 0; i < runs.size(); ++i) {
    names.push_back(runs[i].name);
    const double last = last_of(tests[i], columns[0]);
    score.values.push_back(std::isfinite(last) ? cat(last) : "");
  }
  axes.push_back(score);
  return section(
      "Settings and results",
      cat("One line per run, through its settings to the last test of ", columns[0], "."),
      parallel_chart(names, axes));
}

// The column of a test output, with the best of all runs marked.
std::string test_cell(const std::vector<TestFigure>& tests, const std::string& name, double best) {
  for (const TestFigure& test : tests) {
    if (test.name != name) continue;
    if (!std::isfinite(test.best)) return cell(html_text(short_number(test.last)));
    return cell(cat(html_text(test_value(name, test.last)), "<small",
                    test.best == best ? " class=\"best\"" : "", ">best ",
                    html_text(test_value(name, test.best)), " at ",
                    short_number(static_cast<double>(test.best_at)), "</small>"),
                cat(test.last));
  }
  return cell("");
}

}  // namespace

std::string state_pill(const RunState& state) {
  return cat("<span class=\"state ", state.word, "\">", html_text(state.text), "</span>");
}

std::string runs_table(const std::vector<PageRun>& runs, const std::vector<RunState>& states) {
  std::vector<std::vector<TestFigure>> tests;
  std::vector<std::string> columns;
  std::map<std::string, double> best;
  for (const PageRun& run : runs) {
    tests.push_back(main_tests(figures_of(*run.run)));
    for (const TestFigure& test : tests.back()) {
      if (std::find(columns.begin(), columns.end(), test.name) == columns.end())
        columns.push_back(test.name);
      const auto [at, added] = best.try_emplace(test.name, test.best);
      if (!added && is_better(test.name, test.best, at->second)) at->second = test.best;
    }
  }
  if (columns.size() > kMostTestColumns) columns.resize(kMostTestColumns);
  const std::vector<SettingColumn> settings = settings_of(runs);
  std::string text =
      "<section class=\"wide\"><table class=\"rows runs sortable\" data-name=\"compared\"><tr>"
      "<th>run</th>";
  for (const SettingColumn& column : settings) text += "<th>" + html_text(column.name) + "</th>";
  text +=
      "<th>state</th><th>iterations</th><th>time</th><th>iterations/s</th><th>training loss</th>";
  for (const std::string& name : columns) text += "<th>" + html_text(name) + "</th>";
  text += "</tr>\n";
  for (const size_t i : order_of(tests, columns)) {
    const RunFigures figures = figures_of(*runs[i].run);
    text += cat("<tr class=\"", states[i].word, "\"><td><i class=\"",
                colour_class(static_cast<int>(i)), "\"></i>", html_text(runs[i].name), "</td>");
    for (const SettingColumn& column : settings)
      text += cell(html_text(column.values[i]), column.values[i]);
    text +=
        cat(cell(state_pill(states[i])),
            cell(short_number(static_cast<double>(figures.iterations)), cat(figures.iterations)),
            cell(html_text(duration(figures.seconds)), cat(figures.seconds)),
            cell(speed_text(figures.speed)), cell(short_number(figures.loss), cat(figures.loss)));
    for (const std::string& name : columns) text += test_cell(tests[i], name, best[name]);
    text += "</tr>\n";
  }
  return text + "</table></section>\n" + parallel_section(runs, settings, tests, columns);
}

}  // namespace crema
