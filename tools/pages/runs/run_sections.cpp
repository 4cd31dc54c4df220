#include "tools/pages/runs/run_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/page.h"
#include "tools/pages/runs/run_curves.h"
#include "tools/pages/runs/run_state.h"
#include "tools/runs/spike_advice.h"

namespace crema {

namespace {

constexpr size_t kMostTestTiles = 6;

std::string tile(const std::string& value, const std::string& name) {
  return cat("<div class=\"tile\"><b>", html_text(value), "</b><span>", html_text(name),
             "</span></div>");
}

// The largest ones, compared with the losses before them.
std::vector<std::string> spikes_of(const Run& run, const std::string& folder) {
  constexpr size_t kShown = 3;
  struct Spike {
    int64_t iteration;
    double loss, usual;
  };
  std::vector<Spike> spikes;
  for (const Metric& metric : run.metrics) {
    if (metric.kind != "spike") continue;
    Spike& spike = spikes.emplace_back(Spike{metric.iteration, 0, 0});
    for (const auto& [name, value] : metric.values) {
      if (name == "loss") spike.loss = value;
      if (name == "usual") spike.usual = value;
    }
  }
  const size_t shown = std::min(kShown, spikes.size());
  std::partial_sort(spikes.begin(), spikes.begin() + static_cast<std::ptrdiff_t>(shown),
                    spikes.end(), [](const Spike& one, const Spike& other) {
                      return one.loss - one.usual > other.loss - other.usual;
                    });
  std::vector<std::string> notes;
  for (size_t i = 0; i < shown; ++i) {
    const Spike& spike = spikes[i];
    notes.push_back(cat("The loss of iteration ", spike.iteration, " was ",
                        short_number(spike.loss), ", and about ", short_number(spike.usual),
                        " before it. To see its samples: ",
                        replay_command(folder.empty() ? "DIR" : folder, spike.iteration)));
  }
  if (spikes.size() > shown) notes.push_back(cat(spikes.size() - shown, " more losses jumped"));
  return notes;
}

}  // namespace

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * fraction);
  return text;
}

std::string test_value(const std::string& name, double value) {
  return is_accuracy(name) && std::isfinite(value) ? percent(value) : short_number(value);
}

// Without those of single classes, which have a chart.
std::vector<TestFigure> main_tests(const RunFigures& figures) {
  std::vector<TestFigure> tests;
  for (const TestFigure& test : figures.tests) {
    if (!starts_with(test.name, "accuracy_of_class_")) tests.push_back(test);
  }
  return tests;
}

std::string speed_text(double speed) {
  return std::isfinite(speed) ? short_number(speed < 10 ? speed : std::round(speed)) : "";
}

std::string figure_tiles(const Run& run) {
  const RunFigures figures = figures_of(run);
  std::string text;
  size_t shown = 0;
  for (const TestFigure& test : main_tests(figures)) {
    if (shown++ == kMostTestTiles) break;
    text += tile(test_value(test.name, test.last), "last test: " + test.name);
    if (is_accuracy(test.name) && std::isfinite(test.best) && test.best != test.last) {
      text += tile(test_value(test.name, test.best),
                   cat("best test: ", test.name, ", iteration ",
                       short_number(static_cast<double>(test.best_at))));
    }
  }
  text += tile(short_number(static_cast<double>(figures.iterations)), "iterations");
  if (figures.seconds > 0)
    text += tile(duration(figures.seconds), "training time, including tests");
  if (std::isfinite(figures.speed))
    text += tile(speed_text(figures.speed), "iterations per second");
  if (std::isfinite(figures.waiting) && figures.waiting >= 0.0005)
    text += tile(percent(figures.waiting), "of the time waited for data");
  return "<div class=\"tiles\">" + text + "</div>\n";
}

std::string chart_sections(const std::vector<PageRun>& runs) {
  const double end = end_of(runs);
  std::string text;
  for (const RunChart& chart : charts_of(runs))
    text += section(
        chart.title, chart.note,
        line_chart("iteration", end, chart.series, runs.size() > 1 || chart.series.size() > 1));
  return text.empty() ? "" : "<div class=\"charts\">" + text + "</div>\n";
}

std::string confusion_sections(const PageRun& run) {
  std::map<int, const Metric*> last;
  for (const Metric& metric : run.run->metrics) {
    if (metric.kind == "confusion") last[metric.net] = &metric;
  }
  std::string text;
  for (const auto& [net, metric] : last) {
    const auto counts = counts_of(*metric, run.folder);
    if (counts.empty()) continue;
    const std::string when = short_number(static_cast<double>(metric->iteration));
    text += section(cat("Confusion of the classes", last.size() > 1 ? cat(", test #", net) : ""),
                    counts.size() > 20
                        ? cat("Most frequent confusions in the test of iteration ", when, ".")
                        : cat("The test of iteration ", when,
                              ": one row per label, one column per prediction."),
                    confusion_table(counts, run.classes));
  }
  return text;
}

std::string picture_section(const PagePictures& pictures) {
  std::string text;
  for (const PagePicture& picture : pictures.pictures) {
    const std::string caption = html_text(picture.caption);
    const std::string image =
        cat("<img loading=\"lazy\" src=\"", html_text(picture.source), "\" alt=\"", caption, "\">");
    text += caption.empty()
                ? image
                : cat("<figure>", image, "<figcaption>", caption, "</figcaption></figure>");
  }
  std::string note = pictures.note;
  if (pictures.iteration >= 0)
    note += cat(note.empty() ? "" : " ", "Iteration ",
                short_number(static_cast<double>(pictures.iteration)), ".");
  return section(pictures.title, note,
                 text.empty() ? "" : "<div class=\"pictures\">" + text + "</div>");
}

std::vector<std::string> incidents(const PageRun& of_page) {
  const Run& run = *of_page.run;
  std::vector<std::string> notes = spikes_of(run, of_page.folder);
  int64_t skipped = 0;
  for (const Metric& metric : run.metrics) {
    const auto value = [&](const std::string& wanted) {
      for (const auto& [name, number] : metric.values) {
        if (name == wanted) return short_number(number);
      }
      return std::string("?");
    };
    const std::string at = short_number(static_cast<double>(metric.iteration));
    if (metric.kind == "skip") ++skipped;
    if (metric.kind == "rollback")
      notes.push_back(cat("In iteration ", value("from"), " the run went back to iteration ", at,
                          metric.text("reason").empty() ? "" : ": " + metric.text("reason")));
    if (metric.kind == "early_stop")
      notes.push_back(cat("Early stop in iteration ", at, ": ", metric.text("output"),
                          " got no better than ", value("best"), " in ", value("tests"), " tests"));
  }
  if (skipped > 0)
    notes.push_back(cat(skipped, skipped == 1 ? " update was" : " updates were",
                        " skipped, because their losses were not finite"));
  return notes;
}

std::string described(const Run& run) {
  if (run.identity("net_file").empty()) return "";
  const std::string name = run.identity("net_name");
  return cat("net ", name, name.empty() ? "" : " ", "(", run.identity("net_file"), "), solver ",
             run.identity("solver_file"), ", started ", run.identity("started"));
}

}  // namespace crema
