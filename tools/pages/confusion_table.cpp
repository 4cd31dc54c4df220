#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/strings.h"
#include "tools/pages/chart.h"
#include "tools/pages/run_sections.h"

namespace crema {

namespace {

constexpr size_t kTableLimit = 20, kMostConfusions = 20;

std::string name_of_class(const std::vector<std::string>& classes, size_t count, size_t label) {
  return html_text(classes.size() == count ? classes[label] : cat(label));
}

std::string one_decimal(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

// The shade of a cell: small shares are to be seen, too.
int shade(double share) {
  return share <= 0 ? 0 : std::clamp(static_cast<int>(std::ceil(9 * std::sqrt(share))), 1, 9);
}

std::string most_confused(const std::vector<std::vector<int64_t>>& counts,
                          const std::vector<std::string>& classes) {
  struct Pair {
    int64_t count;
    size_t label, answer;
  };
  std::vector<Pair> pairs;
  for (size_t label = 0; label < counts.size(); ++label) {
    for (size_t answer = 0; answer < counts.size(); ++answer) {
      if (label != answer && counts[label][answer] > 0)
        pairs.push_back({counts[label][answer], label, answer});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kMostConfusions) pairs.resize(kMostConfusions);
  std::string rows = "<tr><th>label</th><th>answer</th><th>samples</th><th>of its label</th></tr>";
  for (const auto& [count, label, answer] : pairs) {
    const auto all = std::accumulate(counts[label].begin(), counts[label].end(), int64_t{0});
    rows += cat("<tr><td>", name_of_class(classes, counts.size(), label), "</td><td>",
                name_of_class(classes, counts.size(), answer), "</td><td>",
                short_number(static_cast<double>(count)), "</td><td>",
                one_decimal(static_cast<double>(count) / static_cast<double>(all)), "</td></tr>");
  }
  return "<div class=\"wide\"><table class=\"rows\">" + rows + "</table></div>";
}

}  // namespace

std::string confusion_table(const std::vector<std::vector<int64_t>>& counts,
                            const std::vector<std::string>& classes) {
  const size_t count = counts.size();
  if (count > kTableLimit) return most_confused(counts, classes);
  std::string rows = "<tr><th></th>";
  for (size_t answer = 0; answer < count; ++answer)
    rows += cat("<th>", name_of_class(classes, count, answer), "</th>");
  rows += "<th></th></tr>";
  for (size_t label = 0; label < count; ++label) {
    const auto all = std::accumulate(counts[label].begin(), counts[label].end(), int64_t{0});
    const std::string name = name_of_class(classes, count, label);
    rows += "<tr><th>" + name + "</th>";
    for (size_t answer = 0; answer < count; ++answer) {
      const int64_t cell = counts[label].at(answer);
      const double share = all > 0 ? static_cast<double>(cell) / static_cast<double>(all) : 0;
      rows +=
          cat("<td class=\"",
              cell == 0         ? "none"
              : label == answer ? "right"
                                : "wrong",
              " q", shade(share), "\" title=\"", name, " → ", name_of_class(classes, count, answer),
              ": ", cell, " of ", all, " (", one_decimal(share), ")\">", cell, "</td>");
    }
    rows += cat(
        "<td>",
        all > 0 ? one_decimal(static_cast<double>(counts[label][label]) / static_cast<double>(all))
                : "",
        "</td></tr>");
  }
  return "<div class=\"wide\"><table class=\"confusion\">" + rows + "</table></div>";
}

}  // namespace crema
