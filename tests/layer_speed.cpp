// layer_speed FOLDER [-gpu N] [-precision NAME] [-implementation NAME]: how long forward and
// backward of each row of its files take, and the fraction of the device's measured peak: of its
// arithmetic for layers that count their multiply-adds, of its memory bandwidth for all, with each
// tensor moved once. The format of rows is that of tests/layers/row.h.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "device/stopwatch.h"
#include "layers/layer_run.h"
#include "net/plan/work.h"
#include "tools/measure/limits.h"

namespace crema {
namespace {

constexpr int kRuns = 20, kLaps = 5;
constexpr double kLap = 0.1;  // seconds, where fewer calls fill them

// Seconds of one call, the best of some laps of many calls each.
double seconds(Context& context, const std::function<void()>& call) {
  call();
  Stopwatch watch(context);
  watch.mark();
  call();
  watch.mark();
  const int runs = std::clamp(static_cast<int>(1e3 * kLap / watch.laps().front()), 1, kRuns);
  watch.hold(1);
  for (int lap = 0; lap <= kLaps; ++lap) {
    watch.mark();
    for (int run = 0; lap < kLaps && run < runs; ++run) call();
  }
  const std::vector<double> laps = watch.laps();
  return 1e-3 * *std::min_element(laps.begin(), laps.end()) / runs;
}

std::string cells(double seconds, const Work& work, const Limits& limits) {
  char text[128];
  std::snprintf(text, sizeof text, " %.1f | %.0f GB/s, %.0f %%", 1e6 * seconds,
                work.bytes / seconds / 1e9, 100 * work.bytes / seconds / limits.bytes);
  std::string all = text;
  if (work.operations > 0) {
    std::snprintf(text, sizeof text, "; %.2f TFLOP/s, %.0f %%", work.operations / seconds / 1e12,
                  100 * work.operations / seconds / limits.operations);
    all += text;
  }
  return all + " |";
}

void measure(const Row& row, Setting setting, const Limits& limits) {
  setting.dtype = DType::f32;
  setting.backward = row.gradient;
  {
    Setting probe = setting;
    probe.device = Device::cpu;
    probe.context = nullptr;
    probe.precision = Precision::fp32;
    const LayerRun layer(row, probe);
    const bool plain = layer.layer().traits().order_rule == OrderRule::row_major;
    setting.order = plain ? Order::row_major : Order::channels_last;
  }
  LayerRun layer(row, setting);
  const Start start = layer.make_start();
  const Forward& forward = layer.forward_arguments();
  const Backward& backward = layer.backward_arguments();
  if (row.gradient) {
    layer.backward(start);
  } else {
    layer.forward(start);
  }
  std::string line = cat("| ", row.name, " |");
  line += cells(seconds(layer.context(), [&] { layer.layer().forward(layer.context(), forward); }),
                forward_work(layer.layer(), layer.preparation(), forward), limits);
  if (row.gradient) {
    line +=
        cells(seconds(layer.context(), [&] { layer.layer().backward(layer.context(), backward); }),
              backward_work(layer.layer(), layer.preparation(), backward), limits);
  } else {
    line += " | |";
  }
  std::puts(line.c_str());
}

int run(int argc, char** argv) {
  Setting setting;
  setting.implementation = "";
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (more && !std::strcmp(argv[i], "-gpu")) {
      ++i;
      setting.device = Device::gpu;
    } else if (more && !std::strcmp(argv[i], "-precision")) {
      setting.precision = precision_named(argv[++i]);
    } else if (more && !std::strcmp(argv[i], "-implementation")) {
      setting.implementation = argv[++i];
    } else {
      folder = argv[i];
    }
  }
  require(!folder.empty(), "layer_speed FOLDER [-gpu 0] [-precision NAME] [-implementation NAME]");
  setting.context = std::make_shared<Context>(setting.device);
  const Limits limits = measure_limits(*setting.context, setting.precision);
  std::printf("Limits: %.0f GB/s, %.2f TFLOP/s in %s\n\n", limits.bytes / 1e9,
              limits.operations / 1e12, std::string(name_of(setting.precision)).c_str());
  std::puts(
      "| row | forward us | of the limits | backward us | of the limits |\n|---|---|---|---|---|");
  int failed = 0;
  for (const Row& row : read_rows(folder)) {
    try {
      measure(row, setting, limits);
    } catch (const Error& error) {
      ++failed;
      std::printf("| %s | failed: %s |\n", row.name.c_str(), error.what());
    }
    std::fflush(stdout);
  }
  return failed > 0;
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  try {
    return crema::run(argc, argv);
  } catch (const crema::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
