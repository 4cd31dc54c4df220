// `crema compare A B`: two runs or two weights files, or a net and an ONNX model; `crema compare -model
// NET.prototxt -with "-precision fp16"`: one net computed in two ways.
#include "base/files.h"
#include "tools/exchange/compare_onnx.h"
#include "tools/flags/command_line.h"
#include "tools/tune/compare_nets.h"
#include "tools/tune/compare_runs.h"
#include "tools/tune/compare_weights.h"
#include "tools/verb.h"

namespace crema {

namespace {

// Of all three comparisons.
using CompareVerbFlags =
    FlagsOf<"with", "model", "weights", "weights_mode", "phase", "level", "stage", "assume",
            "batch", "gpu", "implementation", "off", "precision", "tune", "deterministic",
            "gpu_memory", "python", "tolerance", "proof", "set">;

bool is_model(const std::string& path) { return ends_with(path, ".onnx"); }
bool is_run(const std::string& path) { return folder_exists(path) || ends_with(path, ".jsonl"); }

int run_compare(const VerbCall& call, const CompareVerbFlags& flags) {
  const std::vector<std::string>& paths = call.arguments;
  if (paths.empty()) {
    require(!flags.model.empty() && !flags.with.empty(),
            "expected two runs or two weights files, or one net and flags for the second "
            "computation: -model NET.prototxt -with \"-precision fp16\"");
    const NetPass first = run_pass(call.log, flags, {});
    FlagValues values = call.flags;
    add_flags(flags.with, "-with", "compare", &values);
    print_differences(first, run_pass(call.log, CompareVerbFlags(values), first.parameters),
                      flags.with);
    return 0;
  }
  require(paths.size() == 2, "give a second one to compare ", paths[0], " with");
  require(flags.model.empty() && flags.with.empty(), "-model and -with compare a net with itself; ",
          paths[0], " and ", paths[1], " are compared without them");
  for (const std::string& path : paths)
    require(folder_exists(path) || file_exists(path), path, ": there is no such file or folder");
  if (is_model(paths[0]) != is_model(paths[1])) {
    const int model = is_model(paths[0]) ? 0 : 1;
    compare_onnx(paths[model], paths[1 - model], flags, call.log);
    return 0;
  }
  require(is_run(paths[0]) == is_run(paths[1]), is_run(paths[0]) ? paths[0] : paths[1],
          " is a training run, ", is_run(paths[0]) ? paths[1] : paths[0],
          " is not; compare two of a kind");
  is_run(paths[0]) ? compare_runs(paths[0], paths[1]) : compare_weights(paths[0], paths[1]);
  return 0;
}

REGISTER_VERB(
    compare,
    {.summary = "shows where two runs, weights, models or computations of a net differ",
     .usage = "A B | MODEL.onnx NET.prototxt -weights FILES | -model NET.prototxt [-weights FILES] "
              "-with \"FLAGS\" [flags]",
     .example = "crema compare runs/lenet-1 runs/lenet-2\ncrema compare -model "
                "models/lenet/digits_train_val.prototxt -with \"-implementation plain\"\n"
                "crema compare lenet.onnx deploy.prototxt -weights lenet.caffemodel",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."}},
     .max_arguments = 2,
     .log = LogStyle::brief,
     .run = run_compare});

}  // namespace

}  // namespace crema
