#include "tools/pages/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/strings.h"
#include "tools/pages/chart.h"

namespace crema {

namespace {

constexpr const char* style = R"css(
:root { color-scheme: light dark; --page: #fbfaf8; --card: #ffffff; --line: #e4e1dc; --text: #22201d; --soft: #75706a;
  --s0: #2463b5; --s1: #c2571a; --s2: #2b8a5f; --s3: #8a4fb0; }
@media (prefers-color-scheme: dark) { :root { --page: #171614; --card: #201f1c; --line: #383530; --text: #eceae6;
  --soft: #a19b93; --s0: #74a9ee; --s1: #f09a62; --s2: #6ccb9f; --s3: #c394e6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
.note { color: var(--soft); font-size: 14px; margin: 0 0 12px; }
.warning { border-left: 4px solid var(--s1); padding-left: 12px; margin: 8px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 24px 0; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 20px; }
.tile b { display: block; font-size: 24px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 14px; }
section { margin: 16px 0; }
.chart { overflow-x: auto; }
svg { width: 100%; min-width: 520px; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; }
svg path { fill: none; stroke-width: 2; stroke-linejoin: round; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
path.s0 { stroke: var(--s0); } path.s1 { stroke: var(--s1); } path.s2 { stroke: var(--s2); } path.s3 { stroke: var(--s3); }
circle.s0, i.s0 { fill: var(--s0); background: var(--s0); } circle.s1, i.s1 { fill: var(--s1); background: var(--s1); }
circle.s2, i.s2 { fill: var(--s2); background: var(--s2); } circle.s3, i.s3 { fill: var(--s3); background: var(--s3); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; margin: 8px 0; }
.legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 8px; vertical-align: middle; }
.pictures { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 12px; }
.pictures img { display: block; width: 64px; image-rendering: pixelated; border-radius: 4px; border: 1px solid var(--line); }
.pictures figure { margin: 0; text-align: center; font-size: 14px; font-variant-numeric: tabular-nums; }
.pictures figcaption small { color: var(--soft); display: block; }
)css";

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * fraction);
  return text;
}

bool is_accuracy(const std::string& name) { return name.find("acc") != std::string::npos; }
bool is_loss(const std::string& name) { return name.find("loss") != std::string::npos; }

// Every value of the run by chart: losses of both phases, the other results of the tests, and the
// learning rate.
struct Curves {
  std::map<std::string, Series> losses, tests, rates;
  double end = 0;  // of the x axis, the same in all charts

  explicit Curves(const std::vector<Metric>& metrics) {
    int nets = 0;
    for (const Metric& metric : metrics) {
      nets = std::max(nets, metric.net + 1);
      end = std::max(end, static_cast<double>(metric.iteration));
    }
    for (const Metric& metric : metrics) {
      const bool testing = metric.kind == "test";
      if (!testing && metric.kind != "train") continue;
      for (const auto& [name, value] : metric.values) {
        const std::string test_name =
            nets > 1 ? cat("test #", metric.net, ": ", name) : "test: " + name;
        if (name == "lr") {
          add(rates, "learning rate", metric.iteration, value);
        } else if (is_loss(name)) {
          add(losses, testing ? test_name : "training: " + name, metric.iteration, value);
        } else if (testing) {
          add(tests, nets > 1 ? test_name : name, metric.iteration, value);
        }
      }
    }
  }

  static void add(std::map<std::string, Series>& group, const std::string& name, int64_t iteration,
                  double value) {
    group[name].name = name;
    group[name].points.emplace_back(static_cast<double>(iteration), value);
  }
};

std::string section(const std::string& title, const std::string& note, const std::string& body) {
  return cat("<section><h2>", html_text(title), "</h2>",
             note.empty() ? "" : cat("<p class=\"note\">", html_text(note), "</p>"), body,
             "</section>\n");
}

std::string chart_section(const std::string& title, double end,
                          const std::map<std::string, Series>& group, bool training_first = false) {
  if (group.empty()) return "";
  std::vector<Series> series;
  for (const auto& entry : group) series.push_back(entry.second);
  // Training gets the first colour, as in every report.
  if (training_first) {
    std::stable_partition(series.begin(), series.end(),
                          [](const Series& one) { return starts_with(one.name, "training"); });
  }
  const bool says_more = series.size() == 1 && edit_distance(series[0].name, title) > 1;
  return section(title, says_more ? series[0].name : "", line_chart("iteration", end, series));
}

std::string tile(const std::string& value, const std::string& name) {
  return cat("<div class=\"tile\"><b>", html_text(value), "</b><span>", html_text(name),
             "</span></div>");
}

std::string tiles(const Report& report) {
  std::string text;
  const Metric* last_test = nullptr;
  int64_t iterations = 0;
  double seconds = 0, before = 0;
  for (const Metric& metric : report.metrics) {
    if (metric.kind == "test" && metric.net == 0) last_test = &metric;
    // Each resumed run counts time from its own start.
    if (metric.time < before) seconds += before;
    before = metric.time;
    iterations = std::max(iterations, metric.iteration);
  }
  seconds += before;
  if (last_test) {
    for (const auto& [name, value] : last_test->values) {
      text += tile(is_accuracy(name) && std::isfinite(value) ? percent(value) : short_number(value),
                   "last test: " + name);
    }
  }
  text += tile(short_number(static_cast<double>(iterations)), "iterations");
  text += tile(seconds < 120 ? short_number(std::round(10 * seconds) / 10) + " s"
                             : short_number(std::round(seconds / 6) / 10) + " min",
               "training time, tests included");
  return "<div class=\"tiles\">" + text + "</div>\n";
}

std::string heading(const Report& report) {
  std::string text =
      cat("<h1>", html_text(report.title), "</h1>\n<p class=\"note\">Training report by Crema. ",
          html_text(report.run), "</p>\n");
  for (const std::string& note : report.notes)
    text += cat("<p class=\"warning\">", html_text(note), "</p>\n");
  return text;
}

std::string filters_section(const Report& report) {
  if (report.filters.empty()) return "";
  std::string pictures = "<div class=\"pictures\">";
  for (size_t i = 0; i < report.filters.size(); ++i) {
    pictures += cat("<img src=\"", report.filters[i], "\" alt=\"filter ", i, "\" title=\"filter ",
                    i, "\">");
  }
  return section(
      report.filters_title,
      "Each picture is scaled to its own range: black is its smallest weight, white its largest.",
      pictures + "</div>");
}

std::string mistakes_section(const Report& report) {
  if (report.tested == 0) return "";
  std::string note =
      cat(short_number(static_cast<double>(report.wrong)), " of ",
          short_number(static_cast<double>(report.tested)), " test samples (",
          percent(static_cast<double>(report.wrong) / static_cast<double>(report.tested)), ")");
  if (report.mistakes.empty()) return section("Misclassified samples", note + ".", "");
  note += report.wrong > static_cast<int64_t>(report.mistakes.size())
              ? cat("; the ", report.mistakes.size(), " that the net was surest of. ")
              : ", the surest mistakes first. ";
  std::string pictures = "<div class=\"pictures\">";
  for (const Mistake& mistake : report.mistakes) {
    pictures +=
        cat("<figure><img src=\"", mistake.picture, "\" alt=\"a sample of class ", mistake.label,
            "\"><figcaption>", mistake.label, " → ", mistake.predicted, "<small>",
            std::lround(100 * mistake.confidence), " %</small></figcaption></figure>");
  }
  return section("Misclassified samples",
                 note + "Below each: its label → the net's answer, and how sure the net was.",
                 pictures + "</div>");
}

}  // namespace

std::string report_page(const Report& report) {
  const Curves curves(report.metrics);
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>",
      html_text(report.title), "</title>\n<style>", style, "</style>\n</head>\n<body>\n<main>\n",
      heading(report), tiles(report), chart_section("Loss", curves.end, curves.losses, true),
      chart_section("Test results", curves.end, curves.tests),
      chart_section("Learning rate", curves.end, curves.rates), filters_section(report),
      mistakes_section(report), "</main>\n</body>\n</html>\n");
}

}  // namespace crema
