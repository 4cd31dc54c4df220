#include "tools/measure/net_times.h"

#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/strings.h"
#include "tools/console/table.h"

namespace crema {

namespace {

std::string shown_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text,
                number < 0.0995 ? "%.3f"
                : number < 9.95 ? "%.2f"
                                : "%.1f",
                number);
  return text;
}

std::string shown_rate(double amount, double milliseconds, double unit) {
  return amount > 0 && milliseconds > 0 ? shown_number(1e3 * amount / milliseconds / unit) : "";
}

std::string shown_roofline(const StepShare& share) {
  if (share.roofline == 0) return "";
  return cat(std::lround(100 * share.roofline), share.arithmetic ? "% arithmetic" : "% memory");
}

void add_cells(bool runs, const StepShare& share, std::vector<std::string>* row) {
  row->push_back(runs ? shown_number(share.milliseconds) : "");
  row->push_back(runs ? shown_rate(share.operations, share.milliseconds, 1e12) : "");
  row->push_back(runs ? shown_rate(share.bytes, share.milliseconds, 1e9) : "");
  row->push_back(runs ? shown_roofline(share) : "");
}

bool has_backward(const NetTimes& times) {
  for (const StepTimes::Step& step : times.steps) {
    if (step.backward.runs) return true;
  }
  return false;
}

void print_steps(const NetTimes& times, const Limits& limits) {
  const bool backward = has_backward(times);
  std::vector<std::vector<std::string>> rows = {
      {"layers", "forward ms", "TFLOP/s", "GB/s", "roofline"}};
  if (backward) rows[0].insert(rows[0].end(), {"backward ms", "TFLOP/s", "GB/s", "roofline"});
  const auto add_row = [&](const std::string& name, const StepShare& forward, bool has_forward,
                           const StepShare& back, bool goes_back) {
    rows.push_back({name});
    add_cells(has_forward, forward, &rows.back());
    if (backward) add_cells(goes_back, back, &rows.back());
  };
  for (const StepTimes::Step& step : times.steps)
    add_row(step.name, share_of(step.forward, limits), step.forward.runs,
            share_of(step.backward, limits), step.backward.runs);
  add_row("all", share_of_all(times, &StepTimes::Step::forward, limits), true,
          share_of_all(times, &StepTimes::Step::backward, limits), backward);
  print_table(rows, 1);
}

}  // namespace

std::string percentiles_text(const Timing& timing) {
  char text[96];
  std::snprintf(text, sizeof text, "p50 %.3f ms  p90 %.3f ms  p99 %.3f ms", timing.p50, timing.p90,
                timing.p99);
  return text;
}

StepShare share_of(const StepTimes::Side& side, const Limits& limits) {
  StepShare share;
  if (side.milliseconds.empty()) return share;
  const Roofline roofline = roofline_of(side.work, limits);
  share.milliseconds = median(side.milliseconds);
  share.operations = side.work.operations;
  share.bytes = side.work.bytes;
  share.roofline = share.milliseconds > 0 ? 1e3 * roofline.seconds / share.milliseconds : 0;
  share.arithmetic = roofline.arithmetic;
  return share;
}

StepShare share_of_all(const NetTimes& times, StepTimes::Side StepTimes::Step::*side,
                       const Limits& limits) {
  StepShare all;
  double arithmetic = 0, memory = 0;  // least milliseconds of the steps that are limited by either
  for (const StepTimes::Step& step : times.steps) {
    const StepShare share = share_of(step.*side, limits);
    all.milliseconds += share.milliseconds;
    all.operations += share.operations;
    all.bytes += share.bytes;
    (share.arithmetic ? arithmetic : memory) += share.roofline * share.milliseconds;
  }
  all.roofline = all.milliseconds > 0 ? (arithmetic + memory) / all.milliseconds : 0;
  all.arithmetic = arithmetic > memory;
  return all;
}

void print_times(const TimeResult& result) {
  const Limits& limits = result.limits;
  std::cout << "\nThe steps of the plan (medians), and their share of the roofline, which is the "
               "least time that this device's\nmeasured peak allows: "
            << shown_number(limits.operations / 1e12) << " TFLOP/s (a product of matrices in "
            << result.precision << ") and " << shown_number(limits.bytes / 1e9)
            << " GB/s (a sum of vectors; up to " << shown_number(limits.bytes_for(0) / 1e9)
            << " in caches)\n";
  for (const NetTimes& times : result.nets) {
    if (result.nets.size() > 1) std::cout << "\nBatch " << times.batch << ":\n";
    print_steps(times, limits);
  }
  if (result.nets.size() < 2) return;
  std::vector<std::vector<std::string>> rows = {
      {"batch", "p50 ms", "p90 ms", "p99 ms", "images/s", "MiB"}};
  for (const NetTimes& times : result.nets) {
    const Timing& whole = times.whole;
    rows.push_back({cat(times.batch), shown_number(whole.p50), shown_number(whole.p90),
                    shown_number(whole.p99), shown_number(times.samples_per_second()),
                    times.memory_bytes == 0 ? "" : cat(times.memory_bytes >> 20)});
  }
  std::cout << "\n";
  print_table(rows, 0);
}

}  // namespace crema
