// `crema deploy -model NET.prototxt [-output DEPLOY.prototxt]`: writes the net for use of a net that
// is trained: Input layers instead of data, probabilities instead of losses, and in comments how images
// become the inputs.
#include <iostream>

#include "base/files.h"
#include "base/visible.h"
#include "data/databases/class_names.h"
#include "tools/classify/deployed_model.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/verb.h"

namespace crema {

namespace {

using DeployFlags = FlagsOf<"model", "output", "batch", "assume", "phase", "level", "stage", "set",
                            "resize", "mean", "scale", "rgb", "labels", "weights">;

int run_deploy(const VerbCall& call, const DeployFlags& flags) {
  require(flags.batch >= 0, "-batch ", flags.batch, ": expected a positive number");
  require_apart({{"-output", flags.output}}, files_read(flags.model, flags.weights));
  const NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  const DeployedNet deployed = deploy_model(call.log, flags, input, flags.batch);
  if (!flags.labels.empty()) read_class_names(flags.labels);  // refuses what is no such file
  const std::string text =
      cat("# The net of ", visible(flags.model), " for inference, written by crema deploy.\n") +
      text_of(deployed, flags.output.empty() ? "." : folder_of(flags.output));
  if (flags.output.empty()) {
    std::cout << text << std::flush;
  } else {
    write_file_atomically(flags.output, text);
    call.log.info("Wrote " + flags.output);
  }
  return 0;
}

REGISTER_VERB(
    deploy,
    {.summary = "writes a net for inference: inputs instead of data, no losses",
     .usage = "-model NET.prototxt [-output DEPLOY.prototxt] [flags]",
     .example =
         "crema deploy -model models/lenet/digits_train_val.prototxt -output deploy.prototxt",
     .meanings = {{"output", "The file to write. Empty: the standard output."},
                  {"batch", "The batch size of the input. 0: one."},
                  {"scale",
                   "The factor for values after the mean, such as 0.00390625, to record in the "
                   "file. Empty: what the net says."},
                  {"rgb",
                   "Records in the file that the input's planes are R, G, B; otherwise B, G, R."},
                  {"labels",
                   "The class names to record in the file: a text file, one per line. Empty: those "
                   "in the database."},
                  {"weights",
                   "Trained weights that, with -assume default, determine the channels and size of "
                   "the input has."}},
     .log = LogStyle::brief,
     .run = run_deploy});

}  // namespace

}  // namespace crema
