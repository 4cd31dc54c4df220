#include "tools/measure/device_speed.h"

#include <cstdio>
#include <string>

#include "device/stopwatch.h"
#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "tools/measure/limits.h"

namespace crema {

namespace {

// "3.02 T" of 3.02e12.
std::string scaled(double value) {
  const char* units[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", value, units[unit]);
  return text;
}

// Seconds for exp of 10 * 30 * 768 numbers, 1,000 times: the program in Theano's documentation that
// tests whether a GPU is used.
double exp_seconds(Context& context) {
  constexpr int kTimes = 1000;
  const NetFile file = parse_net_text(
      "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 230400 } } }"
      "layer { name: \"exp\" type: \"Exp\" bottom: \"x\" top: \"y\" }",
      "the exp test");
  NetOptions options;
  options.state.set_phase(TEST);
  Net net(context, file.net, options);
  Stopwatch watch(context);
  for (int i = 0; i <= kTimes; ++i) {
    net.forward(i);
    if (i == 0 || i == kTimes) watch.mark();  // the first pass loads and binds
  }
  return 1e-3 * watch.laps()[0];
}

}  // namespace

void log_device_speed(ProgramLog& log, Context& context, const std::vector<Precision>& precisions) {
  double bytes = 0;
  std::vector<std::string> rates;
  for (const Precision precision : precisions) {
    const Limits limits = measure_limits(context, precision);
    bytes = std::max(bytes, limits.bytes);
    rates.push_back(cat(name_of(precision), " ", scaled(limits.operations), "FLOP/s"));
  }
  log.answer(cat("Memory bandwidth, measured:    ", scaled(bytes), "B/s"));
  log.answer(cat("Matrix products, measured:     ", join(rates, ", ")));
  context.set_log(silent_log());  // of the net
  const double seconds = exp_seconds(context);
  context.set_log(log);
  log.answer(cat("exp of a vector, 1000 times:   ", seconds, " s"));
}

}  // namespace crema
