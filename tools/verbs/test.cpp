// `crema test -model NET.prototxt -weights FILE`: prints the results of a net over some batches,
// and their means. Several ranks share the batches.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "net/records.h"
#include "net/sources/source_files.h"
#include "proto/solver.pb.h"
#include "solver/divergence/not_finite.h"
#include "solver/ranks/ranks.h"
#include "solver/test/class_metrics.h"
#include "solver/test/packed.h"
#include "solver/test/test_batches.h"
#include "solver/test/test_scores.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/random_inputs.h"
#include "tools/ranks/start_ranks.h"
#include "tools/ranks/world_flags.h"
#include "tools/runs/test_json.h"
#include "tools/verb.h"

namespace crema {

namespace {

using TestFlags =
    FlagsOf<"model", "weights", "weights_mode", "iterations", "epoch", "gpu", "phase", "level",
            "stage", "batch", "assume", "implementation", "precision", "gpu_memory", "tune",
            "deterministic", "off", "dump_plan", "set", "metrics", "json", "detection",
            "ap_version", "show_per_class_result", "rank_timeout", "engine">;

// The results of the single batches, in order.
struct BatchResults {
  std::vector<double> losses;
  std::vector<int64_t> records;
  std::vector<std::string> lines;  // for the log
  std::string not_finite;          // where results first became NaN or infinite; "": nowhere

  std::string pack() const {
    Packer packer;
    packer.add(losses, records, not_finite, lines.size());
    for (const std::string& line : lines) packer.add(line);
    return packer.bytes();
  }

  void merge(const std::vector<std::string>& of_ranks) {
    *this = {};
    for (const std::string& results : of_ranks) {
      Unpacker unpacker(results);
      BatchResults part;
      size_t count = 0;
      unpacker.get(part.losses, part.records, part.not_finite, count);
      for (size_t i = 0; i < count; ++i) unpacker.get(lines.emplace_back());
      unpacker.end();
      losses.insert(losses.end(), part.losses.begin(), part.losses.end());
      records.insert(records.end(), part.records.begin(), part.records.end());
      if (not_finite.empty()) not_finite = part.not_finite;
    }
  }

  // Of all records if `epoch`, of the batches otherwise.
  float mean_loss(bool epoch) const {
    double sum = 0;
    int64_t tested = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      // Otherwise summed in float as in Caffe, so that the printed digits agree.
      sum = epoch ? sum + static_cast<double>(records[i]) * losses[i]
                  : static_cast<float>(sum) + static_cast<float>(losses[i]);
      tested += records[i];
    }
    return static_cast<float>(sum) / static_cast<float>(tested);
  }
};

void look_for_not_finite(Net& net, const std::string& weights, int64_t batch,
                         const std::vector<OutputValue>& values, BatchResults* results) {
  const auto finite = [](const OutputValue& output) { return std::isfinite(output.value); };
  if (!results->not_finite.empty() ||
      (std::isfinite(results->losses.back()) && std::all_of(values.begin(), values.end(), finite)))
    return;
  const auto found = first_not_finite(net, batch);
  results->not_finite =
      cat("the results of batch ", batch, " are not finite. ",
          found ? cat("It begins in ", found->text(), "; ",
                      advice_on(net, found, {.weights = weights, .trains = false}))
                : "With the same data again all blobs are finite");
}

// The number of batches to run.
int batches_of_flags(const TestFlags& flags, Net& net) {
  if (!flags.epoch) return flags.iterations;
  try {
    return static_cast<int>(check_whole_epochs(net).batches);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    fail("-epoch: ", error.what());
  }
}

void log_means(ProgramLog& log, const TestScores& scores) {
  for (const OutputValue& mean : scores.outputs()) {
    std::string line = cat(mean.name, " = ", mean.value);
    if (mean.loss_weight != 0)
      line += cat(" (* ", mean.loss_weight, " = ", mean.loss_weight * mean.value, " loss)");
    log.answer(line);
  }
}

// Names of the classes.
std::string legend_of(const ClassNames& names) {
  constexpr size_t kMost = 100;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kMost, names.names.size()); ++i)
    texts.push_back(cat(i, " ", names.names[i]));
  if (names.names.size() > kMost) texts.push_back("the others in " + names.path);
  return "Classes: " + join(texts, ", ");
}

constexpr int64_t kTableClasses = 20;       // whose confusion is shown as a table
constexpr size_t kFrequentConfusions = 10;  // shown where the table would be too wide

std::string right_aligned(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string share_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[16];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

// Wrong answers by their number: "label 3 as 5: 12".
std::vector<std::string> frequent_confusions(const event::Confusion& confusion) {
  std::vector<std::pair<int64_t, int64_t>> wrong;  // count, position
  for (int64_t i = 0; i < confusion.classes * confusion.classes; ++i) {
    if (i / confusion.classes != i % confusion.classes && confusion.counts[i] > 0)
      wrong.emplace_back(-confusion.counts[i], i);
  }
  std::sort(wrong.begin(), wrong.end());
  if (wrong.size() > kFrequentConfusions) wrong.resize(kFrequentConfusions);
  std::vector<std::string> lines;
  for (const auto& [count, at] : wrong)
    lines.push_back(
        cat("  label ", at / confusion.classes, " as ", at % confusion.classes, ": ", -count));
  return lines;
}

// The default report for a classifier's test, without -metrics.
void log_classes(ProgramLog& log, const ClassMetrics& metrics, const ClassNames& names) {
  if (!names.empty()) log.answer(legend_of(names));
  const event::Confusion confusion = *metrics.confusion("");
  if (metrics.classes() <= kTableClasses) {
    for (const std::string& line : lines_of(confusion)) log.answer(line);
  } else if (const auto lines = frequent_confusions(confusion); !lines.empty()) {
    log.answer("Most frequent confusions (-metrics confusion writes all to confusion.csv):");
    for (const std::string& line : lines) log.answer(line);
  }
  log.answer("Class  precision    recall        f1   records");
  for (int64_t c = 0; c < metrics.classes(); ++c) {
    const ClassMetrics::ClassResult result = metrics.result_of(c);
    log.answer(cat(right_aligned(cat(c), 5), right_aligned(share_text(result.precision), 11),
                   right_aligned(share_text(result.recall), 10),
                   right_aligned(share_text(result.f1), 10),
                   right_aligned(cat(result.records), 10)));
  }
}

void log_metrics(ProgramLog& log, const ClassMetrics& metrics, const ClassNames& names,
                 bool writes) {
  if (!names.empty()) log.answer(legend_of(names));
  for (const OutputValue& value : metrics.outputs())
    log.answer(cat(value.name, " = ", value.value));
  if (!writes) return;
  if (const auto confusion = metrics.confusion("confusion.csv")) {
    for (const std::string& line : lines_of(*confusion)) log.answer(line);
  }
}

// -detection and what goes with it, as a solver says it.
SolverParameter evaluation_of_flags(const TestFlags& flags) {
  SolverParameter solver;
  if (flags.detection) solver.set_eval_type("detection");
  solver.set_ap_version(flags.ap_version);
  check_evaluation(solver);
  return solver;
}

void test(ProgramLog& log, const TestFlags& flags, Net& net, const std::vector<std::string>& asked,
          const ClassNames& names) {
  Context& context = net.context();
  const int iterations = batches_of_flags(flags, net);
  log.info(cat("Running for ", iterations, " iterations."));
  const auto begin = std::chrono::steady_clock::now();
  const TestBatches mine = test_batches(net, iterations);
  TestScores scores(evaluation_of_flags(flags), net);
  std::optional<ClassMetrics> metrics;
  const bool by_default = asked.empty() && random_inputs_of(net).empty() &&
                          !ClassMetrics::unasked_values(net.graph()).empty();
  if (by_default) metrics.emplace(net);
  if (!asked.empty()) metrics.emplace(net, asked);
  if (metrics) require_count(names, metrics->classes(), "the net");
  BatchResults results;
  std::optional<RankPause> pause(context);  // the other ranks may have fewer batches
  for (int64_t i = mine.first; i < mine.end; ++i) {
    if (Communicator* const world = context.world()) world->at_iteration(i);
    const int64_t records = flags.epoch ? records_in(net, i) : 1;
    net.forward(i);
    results.losses.push_back(net.loss());
    results.records.push_back(records);
    scores.add(records);
    if (metrics) metrics->add();
    const std::vector<OutputValue> values = values_of(net);
    for (const OutputValue& output : values) {
      if (flags.detection) break;  // rows of boxes
      results.lines.push_back(cat("Batch ", i, ", ", output.name, " = ", output.value));
      log.info(results.lines.back());
    }
    look_for_not_finite(net, flags.weights, i, values, &results);
  }
  pause.reset();
  const size_t logged = results.lines.size();
  merge_ranks(context, mine, &results);
  merge_ranks(context, mine, &scores);
  if (metrics) metrics->finish();
  if (metrics) merge_ranks(context, mine, &*metrics);
  const bool first = context.rank() == 0;  // the others log nothing
  if (first) {
    for (size_t i = logged; i < results.lines.size(); ++i) log.info(results.lines[i]);
  }
  log.answer(cat("Loss: ", results.mean_loss(flags.epoch)));
  log_means(log, scores);
  if (flags.show_per_class_result) {
    for (const event::ClassPrecision& found : scores.classes())
      log.answer(cat("class", found.label, ": ", found.precision));
  }
  if (by_default && first) log_classes(log, *metrics, names);
  if (!by_default && metrics) log_metrics(log, *metrics, names, first);
  if (flags.json && first) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    TestAnswer answer{
        iterations, taken.count(), results.mean_loss(flags.epoch), scores.outputs(), {}, {}};
    if (metrics) {
      answer.metrics = metrics->outputs();
      answer.confusion = metrics->confusion("");
      answer.class_names = names.names;
    }
    std::cout << json_of(answer) << "\n";
  }
  if (!results.not_finite.empty()) fail(results.not_finite);
}

// On one rank of several, or alone: `world` is null then. `gpu`: as -gpu names it.
int test(const VerbCall& call, const TestFlags& flags, World* world) {
  const std::vector<std::string> asked = parse_class_metrics(flags.metrics);
  const std::unique_ptr<Context> context = make_context(call.log, flags);
  if (context->device() == Device::gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
    call.log.info(cat("GPU device name: ", gpu_name(context->ordinal())));
  } else {
    call.log.info("Use CPU.");
  }
  const Precision precision = precision_of_flag(*context, flags.precision);
  log_device(call.log, flags, *context, precision);
  if (world) world->connect(*context);
  std::optional<RankPause> pause(*context);  // reading and tuning take what they take
  NetInput input = read_model(call.log, ModelFlags::without<"recompute">(flags),
                              phase_of_flag(flags.phase, TEST));
  require(!world || input.options.state.phase() == TEST,
          "-phase TRAIN: each rank would have different data; several ranks can test in phase TEST "
          "only");
  input.options.precision = precision;
  input.options.keep_blobs = input.options.keep_blobs || !asked.empty();
  if (asked.empty()) {
    input.options.kept = ClassMetrics::unasked_values;
  }
  input.options.whole_epochs = flags.epoch;
  input.options.weights_follow = !flags.weights.empty();
  Net net(*context, input.net, input.options);
  load_weights_of_flags(flags, net);
  fill_random_inputs(net);
  const std::vector<std::string> inputs = random_inputs_of(net);
  if (!inputs.empty()) {
    call.log.warning(
        cat("Random numbers as ", join(inputs, ", "),
            ": the net reads no data there, so the results show that it runs, not how good it is"));
  }
  if (flags.dump_plan && context->rank() == 0) std::cout << net.dump_plan();
  pause.reset();
  test(call.log, flags, net, asked, class_names_of(input.net, input.options.folder));
  return 0;
}

int run_test(const VerbCall& call, const TestFlags& flags) {
  require(flags.iterations > 0, "-iterations ", flags.iterations, ": expected a positive number");
  require(!flags.epoch || call.given.count("iterations") == 0, "-epoch and -iterations ",
          flags.iterations,
          ": a test is one pass over the data or a number of batches; give one of them");
  require(!flags.json || !flags.dump_plan,
          "-json and -dump_plan: both print on the standard output; give one of them");
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(
      flags.detection || !flags.show_per_class_result,
      "-show_per_class_result works with -detection; -metrics per_class is for classes of images");
  if (flags.json) call.log.print_no_answers();
  const std::optional<Launch> launch = launch_of_environment();
  if (!launch) {
    const std::vector<int> gpus = gpus_of_ranks(call.log, flags.gpu, SolverFile());
    return gpus.empty() ? test(call, flags, nullptr) : start_ranks(gpus, call.words);
  }
  const RankFlags ranks = RankFlags::without<"batch_mode">(flags);
  const std::unique_ptr<World> world = meet_ranks(call.log, ranks, *launch);
  return run_on_rank(call.log, ranks, *world, [&] {
    TestFlags of_rank = flags;
    of_rank.gpu = gpu_of_rank(*launch, flags.gpu, false);
    return test(call, of_rank, world.get());
  });
}

REGISTER_VERB(
    test,
    {.summary = "runs a net with trained weights over some batches and prints its results",
     .usage = "-model NET.prototxt -weights FILE [flags]",
     .example = "crema test -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -iterations 20\ncrema test -model "
                "models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -json > result.json",
     .meanings =
         {{"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"gpu",
           "The number of the GPU to run on; several, separated by commas, or all share "
           "the batches. Empty: the CPU."},
          {"iterations", "The number of batches to test."}},
     .log = LogStyle::timed,
     .run = run_test});

}  // namespace

}  // namespace crema
