// random_nets: random nets, each trained in several ways that must lead to the same values.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "fuzz/random_nets/comparisons.h"
#include "fuzz/random_nets/shrink.h"

namespace crema::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kHelp =
    R"(random_nets [flags]: trains random nets in ways that must lead to the same values.

  --seed N        of all nets (1)
  --nets N        how many nets (100)
  --first N       number of the first one (0)
  --minutes M     stop after so many minutes
  --file PATH     this net instead, as --print wrote it
  --only TEXT     only comparisons whose names contain it
  --print         write the nets as prototxt, and train nothing
  --shrink        remove layers of a net that fails, as long as it still does
  --failures DIR  where the prototxt of a failing net is written (random_nets_failures)
  --help          this text

A net is a function of the seed and of its number. Exit code 1: a comparison failed.
)";

struct Flags {
  uint64_t seed = 1, nets = 100, first = 0;
  double minutes = 0;
  bool print = false, shrink = false, verbose = false;
  std::string file, only, failures = "random_nets_failures";
};

Flags read_flags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] {
      require(i + 1 < argc, name, " needs a value");
      return std::string(argv[++i]);
    };
    if (name == "--help") {
      std::cout << kHelp;
      std::exit(0);
    } else if (name == "--seed") {
      flags.seed = std::stoull(value());
    } else if (name == "--nets") {
      flags.nets = std::stoull(value());
    } else if (name == "--first") {
      flags.first = std::stoull(value());
    } else if (name == "--minutes") {
      flags.minutes = std::stod(value());
    } else if (name == "--file") {
      flags.file = value();
    } else if (name == "--only") {
      flags.only = value();
    } else if (name == "--failures") {
      flags.failures = value();
    } else if (name == "--print") {
      flags.print = true;
    } else if (name == "--shrink") {
      flags.shrink = true;
    } else {
      fail("unknown flag ", name, "; --help lists those there are");
    }
  }
  return flags;
}

struct Counts {
  std::map<std::string, std::map<Verdict, int64_t>> by_comparison;
  std::map<std::string, int64_t> refusals;
  TypeCounts types, planned;
  int64_t nets = 0, not_run = 0;
  bool failed = false;
};

// A message without what differs from net to net.
std::string kind_of(const std::string& message) {
  std::string kind;
  bool quoted = false;
  for (const char c : message.substr(
           message.find("layer \"") == std::string::npos ? 0 : message.find("layer \""))) {
    if (c == '"') quoted = !quoted;
    if (!quoted && !std::isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind.substr(0, 200);
}

void report(const Flags& flags, const RandomNet& net, const Comparison& comparison,
            const std::string& text) {
  std::filesystem::create_directories(flags.failures);
  const std::string path = cat(flags.failures, "/", net.seed, "-", net.number, ".prototxt");
  std::ofstream(path) << net.text();
  std::cout << "FAILED seed " << net.seed << ", net " << net.number << ", " << comparison.name
            << ": " << text << "\n  " << path << ": " << net.net.layer_size() << " layers\n";
  if (!flags.shrink) return;
  const RandomNet small = shrink(net, comparison);
  const std::string small_path =
      cat(flags.failures, "/", net.seed, "-", net.number, "-small.prototxt");
  std::ofstream(small_path) << small.text();
  Rounding rounding(small);
  std::cout << "  " << small_path << ": " << small.net.layer_size() << " layers, "
            << judge(comparison, small, rounding).text << "\n";
}

bool is_finite(const Outcome& outcome) {
  return std::ranges::all_of(outcome, [](const Values& blob) {
    return std::ranges::all_of(blob.values, [](double value) { return std::isfinite(value); });
  });
}

void run_net(const Flags& flags, uint64_t number, Counts* counts) {
  RandomNet net;
  try {
    net = flags.file.empty() ? make_random_net(flags.seed, number) : read_random_net(flags.file);
  } catch (const Error& error) {
    counts->failed = true;
    std::cout << "FAILED seed " << flags.seed << ", net " << number << ": " << error.what() << "\n";
    return;
  }
  if (flags.print) {
    std::cout << net.text();
    return;
  }
  ++counts->nets;
  count_types(net, &counts->types);
  Rounding rounding(net);
  try {
    // The solver ends a run whose loss is infinite only if it stays so.
    if (!is_finite(rounding.exact())) {
      ++counts->not_run;
      return;
    }
  } catch (const Diverged&) {
    ++counts->not_run;
    return;
  } catch (const Error& error) {
    counts->failed = true;
    report(flags, net, {"set-up", nullptr}, error.what());
    return;
  }
  for (const Comparison& comparison : comparisons()) {
    if (comparison.name.find(flags.only) == std::string::npos) continue;
    const Judgement judgement = judge(comparison, net, rounding);
    if (!flags.file.empty() && !judgement.text.empty()) std::cout << judgement.text << "\n";
    ++counts->by_comparison[comparison.name][judgement.verdict];
    if (judgement.verdict == Verdict::refused) ++counts->refusals[kind_of(judgement.text)];
    if (judgement.verdict != Verdict::different) continue;
    counts->failed = true;
    report(flags, net, comparison, judgement.text);
  }
  for (const auto& [type, count] : rounding.planned) counts->planned[type] += count;
}

void print(const Counts& counts) {
  int64_t layers = 0;
  for (const auto& [type, count] : counts.types) layers += count;
  std::cout << counts.nets << " nets, " << layers << " layers of " << counts.types.size()
            << " types; " << counts.not_run << " nets diverge in float64\n";
  std::cout << "  fused:";
  for (const auto& [type, count] : counts.planned) {
    if (type.find('+') != std::string::npos) std::cout << " " << type << " " << count;
  }
  std::cout << "\n";
  for (const auto& [name, verdicts] : counts.by_comparison) {
    const auto count = [&](Verdict verdict) {
      const auto found = verdicts.find(verdict);
      return found == verdicts.end() ? 0 : found->second;
    };
    std::cout << "  " << name << ": " << count(Verdict::same) << " same, "
              << count(Verdict::different) << " different, " << count(Verdict::undecided)
              << " undecided, " << count(Verdict::refused) << " refused, "
              << count(Verdict::skipped) << " skipped\n";
  }
  for (const auto& [message, count] : counts.refusals)
    std::cout << "  refused " << count << " times: " << message << "\n";
}

int run(int argc, char** argv) {
  const Flags flags = read_flags(argc, argv);
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(60 * flags.minutes));
  if (!flags.print && gpu_count() == 0)
    std::cout << "no GPU here: comparisons with a GPU are skipped\n";
  Counts counts;
  for (uint64_t i = 0; i < (flags.file.empty() ? flags.nets : 1); ++i) {
    if (flags.minutes > 0 && Clock::now() > end) break;
    run_net(flags, flags.first + i, &counts);
  }
  if (!flags.print) print(counts);
  return counts.failed ? 1 : 0;
}

}  // namespace
}  // namespace crema::tests

int main(int argc, char** argv) {
  try {
    return crema::tests::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
