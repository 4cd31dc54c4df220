// Charts of values that no sane training has: their ticks are few and their lines are in the picture.
#include "tools/pages/charts/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/pages/charts/parallel_chart.h"
#include "tools/pages/charts/standalone_chart.h"
#include "tools/pages/charts/ticks.h"

namespace crema::tests {
namespace chart_test {

constexpr double kLargest = std::numeric_limits<double>::max(),
                 kSmallest = std::numeric_limits<double>::denorm_min(), kNan = NAN, kInf = INFINITY;

struct Limits {
  double low, high;
  std::vector<double> linear, logarithmic;  // ticks
};

TEST(Ticks, AreFewForAnyTwoNumbers) {
  const double before = std::nextafter(1e20, 0), after = std::nextafter(1e20, kInf);
  const std::vector<Limits> rows = {
      {0, 1, {0, 0.2, 0.4, 0.6, 0.8, 1}, {}},
      {-3, 7, {-2, 0, 2, 4, 6}, {}},
      {1e-3, 100, {20, 40, 60, 80, 100}, {1e-3, 1e-2, 1e-1, 1, 10, 100}},
      {1e20, after, {1e20, after}, {1e20}},
      {before, 1e20, {before, 1e20}, {1e20}},
      {-1e308, 1e308, {-1e308, -5e307, 0, 5e307, 1e308}, {}},
      {1e-300, 1e300, {5e299, 1e300}, {1e-300, 1e-200, 1e-100, 1, 1e100, 1e200, 1e300}},
      {0, kSmallest, {0, kSmallest}, {}},
      {2, 2, {}, {}},
      {2, 1, {}, {}},
      {kNan, 1, {}, {}},
      {0, kNan, {}, {}},
      {1, kInf, {}, {}},
      {-kInf, kInf, {}, {}},
  };
  for (const Limits& row : rows) {
    SCOPED_TRACE(testing::Message() << row.low << " to " << row.high);
    const std::vector<double> linear = linear_ticks(row.low, row.high, 5),
                              logarithmic = log_ticks(row.low, row.high, 5);
    ASSERT_EQ(linear.size(), row.linear.size());
    for (size_t i = 0; i < linear.size(); ++i)
      EXPECT_NEAR(linear[i], row.linear[i], 1e-9 * std::abs(row.linear[i]));
    ASSERT_EQ(logarithmic.size(), row.logarithmic.size());
    for (size_t i = 0; i < logarithmic.size(); ++i)
      EXPECT_DOUBLE_EQ(logarithmic[i], row.logarithmic[i]);
  }
}

TEST(Ticks, AreFewForAllPairsOfOddNumbers) {
  std::vector<double> odd = {0, 1, 0.1, 1e-7, 1e20, 1e300, kSmallest, kLargest, kInf, kNan};
  for (const double value : std::vector<double>(odd)) {
    odd.insert(odd.end(), {std::nextafter(value, kInf), std::nextafter(value, -kInf), -value});
  }
  for (const double low : odd) {
    for (const double high : odd) {
      EXPECT_LE(linear_ticks(low, high, 5).size(), 12u) << low << " to " << high;
      EXPECT_LE(log_ticks(low, high, 5).size(), 12u) << low << " to " << high;
      // The same two as losses, and as iterations.
      for (const Series& series :
           {Series{"loss", {{0, low}, {1, high}}}, Series{"loss", {{low, 1}, {high, 2}}}}) {
        for (const std::string& chart :
             {line_chart("iteration", 1, {series}, false), sparkline(series)}) {
          EXPECT_LT(chart.size(), 5000u) << low << " to " << high;
          const size_t line = chart.find(" d=\"");
          if (line == std::string::npos || !std::isfinite(series.points[0].first) ||
              !std::isfinite(series.points[1].first))
            continue;
          const std::string path = chart.substr(line + 4, chart.find('"', line + 4) - line - 4);
          EXPECT_EQ(path.find_first_not_of("ML-0123456789. "), std::string::npos)
              << low << " to " << high << ": " << path;
        }
      }
    }
  }
}

TEST(Ticks, OfOtherChartsAreFew) {
  StandaloneChart chart;
  chart.curve = {{1e-6, 1e20}, {1, 1e20}};
  chart.y_low = 1e20;
  chart.y_high = std::nextafter(1e20, kInf);
  EXPECT_LT(standalone_chart(chart).size(), 5000u);
  const std::string parallel =
      parallel_chart({"a", "b"}, {{"rate", {"0.1", "0.10"}}, {"loss", {"-1e308", "1e308"}}});
  EXPECT_EQ(parallel.find("nan"), std::string::npos) << parallel;
}

}  // namespace chart_test
}  // namespace crema::tests
