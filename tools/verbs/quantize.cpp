// `crema quantize -model NET.prototxt -weights FILE -output FOLDER`: makes the net compute with 8-bit integers, and
// shows what that costs.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/visible.h"
#include "net/net_text.h"
#include "net/preparation.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/quantize/quantization_job.h"
#include "tools/verb.h"

namespace crema {

namespace {

using QuantizeFlags =
    FlagsOf<"model", "weights", "weights_mode", "output", "calibrate", "calibrate_images", "range",
            "bits", "budget", "keep", "each_layer", "iterations", "gpu", "implementation",
            "gpu_memory", "tune", "deterministic", "off", "recompute", "level", "stage", "set">;

QuantizationSettings settings_of(const QuantizeFlags& flags) {
  require(flags.iterations > 0, "-iterations ", flags.iterations, ": expected a positive number");
  require(flags.calibrate_images > 0, "-calibrate_images ", flags.calibrate_images,
          ": expected a positive number");
  require(flags.budget >= 0, "-budget ", flags.budget,
          ": expected points of accuracy, such as 0.5, or 0 for no limit");
  require(flags.budget == 0 || flags.each_layer,
          "-budget needs -each_layer, which shows the layers that lose most");
  QuantizationSettings settings;
  settings.calibrate = flags.calibrate;
  settings.images = flags.calibrate_images;
  if (!flags.range.empty()) settings.rule = range_rule_named(flags.range);
  require(flags.bits >= 2 && flags.bits <= 8, "-bits ", flags.bits, ": expected 2 to 8");
  settings.weight_bits = flags.bits;
  settings.test_batches = flags.iterations;
  for (const std::string& name : split(flags.keep, ',')) settings.keep.insert(name);
  return settings;
}

std::string number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// With a sign, unless it rounds to 0.
std::string change_text(double value) {
  return std::abs(value) < 0.005 ? "0.00" : number(value, "%+.2f");
}

void print_layers(const std::vector<QuantizedLayer>& layers, const Score& exact, bool each) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"layer", "integers", "largest", "range", "clipped", "signal/noise"});
  if (each) rows[0].push_back("points alone");
  for (const QuantizedLayer& layer : layers) {
    const LayerSteps& steps = layer.steps;
    rows.push_back({steps.layer,
                    layer.is_kept    ? "float32"
                    : steps.has_sign ? "int8"
                                     : "uint8",
                    number(steps.largest, "%.4g"), number(steps.range, "%.4g"),
                    number(100 * steps.clipped, "%.3f %%"),
                    std::isinf(layer.noise) ? "exact" : number(layer.noise, "%.1f dB")});
    if (each)
      rows.back().push_back(
          change_text(-Score::loss(exact, {exact.name, layer.alone, exact.is_share})));
  }
  print_table(rows, 2);
}

// Leaves the layers that lose most alone in float32 until the loss is within the budget.
Score keep_to_budget(double budget, const Score& exact, QuantizationJob& job, ProgramLog& log) {
  std::vector<QuantizedLayer*> order;
  for (QuantizedLayer& layer : job.layers())
    if (!layer.is_kept) order.push_back(&layer);
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    return exact.is_share ? a->alone < b->alone : a->alone > b->alone;
  });
  Score score = job.score();
  for (QuantizedLayer* const layer : order) {
    if (Score::loss(exact, score) <= budget) break;
    layer->is_kept = true;
    score = job.score();
    log.info(cat(layer->steps.layer, " stays in float32: ", score.text()));
  }
  return score;
}

int run_quantize(const VerbCall& call, const QuantizeFlags& flags) {
  require(!flags.model.empty(), "a net is needed: -model NET.prototxt");
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(!flags.output.empty(), "-output FOLDER is needed: for net.prototxt and net.caffemodel");
  const QuantizationSettings settings = settings_of(flags);
  const std::string text_path = flags.output + "/net.prototxt",
                    weights_path = flags.output + "/net.caffemodel";
  require_apart({{"-output", text_path}, {"-output", weights_path}},
                files_read(flags.model, flags.weights));
  std::error_code problem;
  require(!std::filesystem::exists(flags.output, problem) ||
              std::filesystem::is_directory(flags.output, problem),
          "-output ", visible(flags.output), ": is a file; expected a folder, or a new one");
  const std::unique_ptr<Context> context = make_context(call.log, flags);
  context->set_log(call.log.library());
  NetInput input = read_net(call.log, flags, TEST);
  set_passes(flags, &input.options);
  Settings set(flags.set);
  const NetFile file = read_net_file(flags.model, &set);
  QuantizationJob job(*context, file, input, settings,
                      [&](Net& net) { load_weights_of_flags(flags, net); });
  if (!job.folded().empty())
    call.log.info(cat("Folded ", job.folded().size(),
                      " layers (BatchNorm, Scale, Bias) into the weights before them"));
  const bool judged = job.has_score(), each = judged && flags.each_layer;
  require(judged || flags.budget == 0,
          "-budget needs a net that reads data with labels, such as the training file");
  Score exact, rounded;
  if (judged) {
    exact = job.exact_score();
    call.log.answer(cat("float32: ", exact.text(), " (", flags.iterations, " batches)"));
  }
  const int64_t images = job.choose();
  call.log.info(job.is_trained()
                    ? std::string("Took the ranges that the weights have from training")
                    : cat("Chose ranges from ", images, " images"));
  if (each)
    job.score_each([&](size_t i) {
      call.log.info(cat("Testing with ", job.layers()[i].steps.layer, " alone quantized"));
    });
  if (judged)
    rounded = flags.budget > 0 ? keep_to_budget(flags.budget, exact, job, call.log) : job.score();
  job.measure_noise();
  print_layers(job.layers(), exact, each);
  std::string result;
  if (judged) {
    call.log.answer(cat("int8: ", rounded.text(), ", ", change_text(-Score::loss(exact, rounded)),
                        exact.is_share ? " points" : ""));
    result = cat(": ", exact.text(), " became ", rounded.text());
  }
  std::filesystem::create_directories(flags.output, problem);
  require(!problem, "-output ", visible(flags.output), ": cannot be made: ", problem.message());
  write_with_weights(
      text_path,
      cat("# The net of ", visible(flags.model), " with 8-bit integers, written by crema quantize",
          result, ".\n", text_of(input.preparation, flags.output), net_text(job.net())),
      [&] { job.save(weights_path); });
  call.log.info(cat("Wrote ", visible(text_path), " and ", visible(weights_path)));
  return 0;
}

REGISTER_VERB(
    quantize,
    {.summary = "makes a net compute with 8-bit integers, and shows the accuracy that it loses",
     .usage = "-model NET.prototxt -weights FILE -output FOLDER [flags]",
     .example = "crema quantize -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet_int8\ncrema test "
                "-model lenet_int8/net.prototxt -weights lenet_int8/net.caffemodel",
     .meanings =
         {{"output", "The folder for net.prototxt and net.caffemodel."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"iterations", "The number of batches of a test."}},
     .log = LogStyle::brief,
     .run = run_quantize});

}  // namespace

}  // namespace crema
