#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/runs/run_sections.h"

namespace crema {

namespace {

constexpr size_t kTableLimit = 20, kMostConfusions = 20;

std::string name_of_class(const std::vector<std::string>& classes, size_t count, size_t label) {
  return html_text(classes.size() == count ? classes[label] : cat(label));
}

std::string one_decimal(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * share);
  return text;
}

// The shade of a cell: small shares are to be seen, too.
int shade(double share) {
  return share <= 0 ? 0 : std::clamp(static_cast<int>(std::ceil(9 * std::sqrt(share))), 1, 9);
}

int64_t total_of(const std::vector<int64_t>& row) {
  return std::accumulate(row.begin(), row.end(), int64_t{0});
}

// "": there is nothing to take a share of.
std::string share_of(int64_t part, int64_t all) {
  return all > 0 ? one_decimal(static_cast<double>(part) / static_cast<double>(all)) : "";
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
    const int64_t all = total_of(counts[label]);
    rows += cat("<tr><td>", name_of_class(classes, counts.size(), label), "</td><td>",
                name_of_class(classes, counts.size(), answer), "</td><td>",
                short_number(static_cast<double>(count)), "</td><td>", share_of(count, all),
                "</td></tr>");
  }
  return "<div class=\"wide\"><table class=\"rows\">" + rows + "</table></div>";
}

// How often the net predicted each class.
std::vector<int64_t> answers_of(const std::vector<std::vector<int64_t>>& counts) {
  std::vector<int64_t> answers(counts.size());
  for (const auto& row : counts) {
    for (size_t answer = 0; answer < row.size(); ++answer) answers[answer] += row[answer];
  }
  return answers;
}

std::string classes_table(const std::vector<std::vector<int64_t>>& counts,
                          const std::vector<std::string>& classes) {
  const std::vector<int64_t> answers = answers_of(counts);
  std::string rows = "<tr><th>class</th><th>samples</th><th>precision</th><th>recall</th></tr>";
  for (size_t label = 0; label < counts.size(); ++label) {
    const int64_t all = total_of(counts[label]), right = counts[label][label];
    rows +=
        cat("<tr><td>", name_of_class(classes, counts.size(), label), "</td><td>", all, "</td><td>",
            share_of(right, answers[label]), "</td><td>", share_of(right, all), "</td></tr>");
  }
  return "<details><summary>Precision and recall of each class</summary><div class=\"wide\"><table "
         "class=\"rows sortable\" data-name=\"classes\">" +
         rows + "</table></div></details>";
}

}  // namespace

std::string confusion_table(const std::vector<std::vector<int64_t>>& counts,
                            const std::vector<std::string>& classes) {
  const size_t count = counts.size();
  if (count > kTableLimit) return most_confused(counts, classes) + classes_table(counts, classes);
  const std::vector<int64_t> answers = answers_of(counts);
  std::string rows = "<tr><th></th>", precision = "<tr><th>precision</th>";
  for (size_t answer = 0; answer < count; ++answer) {
    rows += cat("<th>", name_of_class(classes, count, answer), "</th>");
    precision += cat("<td>", share_of(counts[answer][answer], answers[answer]), "</td>");
  }
  rows += "<th>recall</th></tr>";
  for (size_t label = 0; label < count; ++label) {
    const int64_t all = total_of(counts[label]);
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
    rows += cat("<td>", share_of(counts[label][label], all), "</td></tr>");
  }
  return "<div class=\"wide\"><table class=\"confusion\">" + rows + precision +
         "<td></td></tr></table></div>";
}

}  // namespace crema
