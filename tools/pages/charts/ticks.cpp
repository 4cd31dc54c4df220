#include "tools/pages/charts/ticks.h"

#include <algorithm>
#include <cmath>

namespace crema {

namespace {

// Far more than rounding up a step to 1, 2 or 5 can give.
int most_ticks(int wanted) { return 2 * wanted + 2; }

void add_tick(long double tick, std::vector<double>* ticks) {
  const auto value = static_cast<double>(tick);
  if (std::isfinite(value) && (ticks->empty() || value > ticks->back())) ticks->push_back(value);
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int wanted) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(low < high)) return {};
  const long double raw = (static_cast<long double>(high) - low) / wanted;
  const long double power = std::pow(10.0L, std::floor(std::log10(raw))), unit = raw / power;
  const long double step = power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10);
  std::vector<double> ticks;
  // Each is computed from its number, so the loop ends even where tick + step == tick.
  const long double first = std::ceil(low / step);
  for (int i = 0; i < most_ticks(wanted); ++i) {
    const long double tick = (first + i) * step;
    if (!(tick <= high + step * 1e-9L)) break;
    add_tick(std::abs(tick) < step * 1e-9L ? 0 : tick, &ticks);
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int wanted) {
  if (!std::isfinite(high) || !(low > 0) || !(low < high)) return {};
  const double from = std::log10(low), decades = std::log10(high) - from;
  const int step = std::max(1, static_cast<int>(std::ceil(decades / (wanted + 1))));
  std::vector<double> ticks;
  int power = static_cast<int>(std::ceil(from - 1e-9));
  for (int i = 0; i < most_ticks(wanted); ++i, power += step) {
    const double tick = std::pow(10.0, power);
    if (tick > high * 1.0001L) break;
    if (tick > 0) add_tick(tick, &ticks);
  }
  return ticks;
}

}  // namespace crema
