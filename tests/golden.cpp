// golden FOLDER [-gpu N] [-implementation NAME] [-only TEXT]: runs every case of a folder in the
// format of tests/goldens/README.md (layer cases CASE.prototxt + CASE.h5, training runs
// train/CASE/), prints a line a case with the largest error and a closing count. Exit code 1 when a
// case fails.
#include "golden.h"

#include <dirent.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "kernels/core/kernel_registry.h"
#include "layers/layer.h"
#include "net/prototxt/prototxt.h"

namespace crema::tests {

void CaseResult::fail(const std::string& path, const std::string& why) {
  failures.push_back(cat(path, " ", why));
}

void CaseResult::compare(const std::string& path, const std::vector<double>& ours,
                         const std::vector<double>& reference, double relative, double absolute) {
  double scale = 0, error = 0;
  for (double r : reference) scale = std::max(scale, std::abs(r));
  for (size_t i = 0; i < reference.size(); ++i) {
    const double difference = std::abs(ours[i] - reference[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
  }
  const double share = error / std::max(scale, 1e-30);
  if (error > 0 && (share > worst || worst_path.empty())) {
    worst = share;
    worst_path = path;
  }
  if (!(error <= relative * scale + absolute))
    fail(path, cat("is off by ", error, " (largest value ", scale, ")"));
}

void CaseResult::merge(const CaseResult& other) {
  if (other.worst > worst) {
    worst = other.worst;
    worst_path = other.worst_path;
  }
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

namespace {

std::vector<std::string> list_folder(const std::string& folder) {
  std::vector<std::string> names;
  DIR* opened = opendir(folder.c_str());
  if (!opened) return names;
  while (const dirent* entry = readdir(opened)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

// Types that this build does not have yet: their cases are counted separately, not failed.
std::string unknown_type(const std::string& prototxt) {
  const NetFile file = read_net_file(prototxt);
  for (const LayerParameter& layer : file.net.layer()) {
    if (!LayerRegistry::has(layer.type())) return layer.type();
  }
  return "";
}

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
};

template <typename Run>
void report(const std::string& name, Counts* counts, Run run) {
  CaseResult result;
  try {
    result = run();
  } catch (const std::exception& error) {
    result.fail("error:", error.what());
  }
  const bool good = result.failures.empty();
  ++(good ? counts->passed : counts->failed);
  std::printf("%-6s %-34s worst %.2e %s\n", good ? "ok" : "FAILED", name.c_str(), result.worst,
              result.worst_path.c_str());
  for (const std::string& failure : result.failures) std::printf("         %s\n", failure.c_str());
}

int run(int argc, char** argv) {
  std::string folder, only;
  int gpu = -1;
  std::string implementation;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-gpu" && i + 1 < argc) {
      gpu = std::atoi(argv[++i]);
    } else if (argument == "-implementation" && i + 1 < argc) {
      implementation = argv[++i];
    } else if (argument == "-only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      folder = argument;
    }
  }
  require(folder_exists(folder),
          "usage: golden FOLDER [-gpu N] [-implementation NAME] [-only TEXT]");
  check_implementation(implementation);
  Context context(gpu >= 0 ? Device::gpu : Device::cpu, std::max(gpu, 0));
  context.implementation = implementation;
  Counts counts;
  for (const std::string& name : list_folder(folder)) {
    if (!ends_with(name, ".prototxt") || name.find(only) == std::string::npos) continue;
    const std::string stem = folder + "/" + name.substr(0, name.size() - 9);
    if (!file_exists(stem + ".h5")) continue;
    const std::string unknown = unknown_type(stem + ".prototxt");
    if (!unknown.empty()) {
      std::printf("%-6s %-34s has no layer type %s here\n", "skip", name.c_str(), unknown.c_str());
      ++counts.skipped;
      continue;
    }
    report(name.substr(0, name.size() - 9), &counts, [&] { return run_layer_case(context, stem); });
  }
  for (const std::string& name : list_folder(folder + "/train")) {
    if (("train/" + name).find(only) == std::string::npos) continue;
    report("train/" + name, &counts,
           [&] { return run_training_case(context, folder + "/train/" + name); });
  }
  std::printf("%d passed, %d failed, %d skipped\n", counts.passed, counts.failed, counts.skipped);
  return counts.failed > 0 || counts.passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace crema::tests

int main(int argc, char** argv) {
  try {
    return crema::tests::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden: %s\n", error.what());
    return 1;
  }
}
