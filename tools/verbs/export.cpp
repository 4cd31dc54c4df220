// `crema export -model NET.prototxt -weights FILES -output NET.onnx`: writes a net for other programs,
// and shows that they compute the same.
#include <cmath>
#include <iostream>

#include "base/files.h"
#include "base/visible.h"
#include "tools/classify/deployed_model.h"
#include "tools/console/table.h"
#include "tools/console/terminal.h"
#include "tools/devices.h"
#include "tools/exchange/verification.h"
#include "tools/flags/flags.h"
#include "tools/flags/net_flags.h"
#include "tools/tune/differences.h"
#include "tools/verb.h"

namespace crema {

namespace {

constexpr int kDraws = 3;
// The format of a file ends here: lengths in it are signed 32-bit numbers.
constexpr size_t kMaxModel = (size_t{1} << 31) - 1;

OnnxOptions options_of_flags() {
  OnnxOptions options;
  options.opset = FLAGS_opset;
  options.fold = FLAGS_fold;
  options.any_batch = FLAGS_batch == 0;
  return options;
}

// Prints the blobs that differ most and all results; returns whether these agree.
bool report(const Verification& one, ProgramLog& log) {
  const std::string runtime = cat(one.runtime, " ", one.version);
  if (!one.problem.empty()) {
    log.warning(cat(runtime, " cannot run the model: ", one.problem));
    return true;
  }
  const bool colour = has_colour(1);
  bool agree = true;
  double worst = 0;
  std::vector<std::vector<std::string>> rows = {
      {"layer", "blob", "shape", "largest difference", "relative"}};
  for (const VerifiedBlob& blob : one.blobs) {
    const bool within = blob.relative <= FLAGS_tolerance;
    agree = agree && (within || !blob.output);
    if (!(blob.relative <= worst)) worst = blob.relative;
    const std::string relative = shown_difference(blob.relative, blob.largest == 0);
    rows.push_back({blob.where, blob.blob, blob.shape,
                    shown_difference(blob.largest, blob.largest == 0),
                    within ? relative : painted(relative, Colour::red, colour)});
  }
  std::cout << runtime << ": " << one.blobs.size() << " blobs, " << kDraws
            << " random inputs; the largest difference is " << shown_difference(worst, worst == 0)
            << " of a blob's largest value\n";
  print_table(rows, 3);
  return agree;
}

void verify(Net& net, const OnnxModel& exported, ProgramLog& log) {
  std::string problem;
  const std::string python = FLAGS_python.empty() ? "python3" : FLAGS_python;
  const std::vector<Verification> all = verify_onnx(net, exported, python, kDraws, &problem);
  if (all.empty()) {
    log.warning(cat("Not verified: ", python,
                    problem.empty() ? " has no runtime for ONNX" : ": " + problem,
                    ". `pip install onnxruntime`, or -python PROGRAM for a Python that has one"));
    return;
  }
  for (const Verification& one : all) {
    require(report(one, log), one.runtime,
            " computes other results than Crema: "
            "results in the table above are beyond -tolerance ",
            FLAGS_tolerance, ". The model was written");
  }
}

int run_export(const VerbCall& call) {
  require(!FLAGS_output.empty(), "-output NET.onnx is needed: the file to write");
  require(!FLAGS_weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(FLAGS_batch >= 0, "-batch ", FLAGS_batch, ": expected a positive number");
  ir_version_of(FLAGS_opset);
  const std::unique_ptr<Context> context = make_context(call.log, "");
  NetInput input = read_net(call.log, net_flags(call.flags), phase_of_flag(TEST));
  const DeployedNet deployed = deploy_model(call.log, input, FLAGS_batch);
  input.options.where = [&deployed, where = input.options.where](int i) {
    return where(deployed.origins[i]);
  };
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  Net net(*context, deployed.net, input.options);
  load_weights_of_flag(net);
  OnnxModel exported = export_onnx(net, options_of_flags());
  exported.model.set_producer_version(CREMA_VERSION);
  for (const std::string& note : exported.notes) call.log.warning(note);
  require(exported.model.ByteSizeLong() <= kMaxModel, FLAGS_output, ": the model has ",
          exported.model.ByteSizeLong(), " bytes, and a file of this format ends at 2 GiB");
  write_file_atomically(FLAGS_output, exported.model.SerializeAsString());
  call.log.info(cat("Wrote ", visible(FLAGS_output), ": opset ", FLAGS_opset, ", ",
                    exported.model.graph().node_size(), " operators"));
  if (FLAGS_verify) verify(net, exported, call.log);
  return 0;
}

REGISTER_VERB(
    export,
    {.summary = "writes a net as ONNX, and verifies it in other runtimes",
     .usage = "-model NET.prototxt -weights FILES -output NET.onnx [flags]",
     .example = "crema export -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet.onnx",
     .flags = {"model",  "weights", "weights_mode", "output", "opset", "fold",  "batch",
               "verify", "python",  "tolerance",    "assume", "phase", "level", "stage",
               "set",    "resize",  "mean",         "scale",  "rgb",   "labels"},
     .meanings = {{"output", "The file to write."},
                  {"batch", "The batch size of the model. 0: any."},
                  {"scale",
                   "The factor for values after the mean, such as 0.00390625, to record in the "
                   "file. Empty: what the net says."},
                  {"rgb",
                   "Records in the file that the input's planes are R, G, B; otherwise B, G, R."},
                  {"labels",
                   "The class names to record in the file: a text file, one per line. Empty: those "
                   "in the database."}},
     .log = LogStyle::brief,
     .run = run_export});

}  // namespace

}  // namespace crema
