// `crema draw NET.prototxt [-output NET.svg]`: draws a net.
#include <iostream>

#include "base/files.h"
#include "tools/flags/net_flags.h"
#include "tools/pages/drawing/net_drawing.h"
#include "tools/verb.h"

namespace crema {

namespace {

using DrawFlags = FlagsOf<"output", "phase", "level", "stage", "assume", "batch", "off", "set">;

int run_draw(const VerbCall& call, const DrawFlags& flags) {
  ModelFlags net = ModelFlags::without<"model", "recompute">(flags);
  net.model = call.arguments[0];
  const NetInput input = read_model(call.log, net, phase_of_flag(flags.phase, TRAIN));
  const std::string svg = net_svg(input, net.model, call.log);
  if (flags.output.empty()) {
    std::cout << svg << std::flush;
  } else {
    write_file_atomically(flags.output, svg);
    call.log.info("Wrote " + flags.output);
  }
  return 0;
}

REGISTER_VERB(draw,
              {.summary = "draws a net as SVG: layers, shapes, parameters, operations, memory",
               .usage = "NET.prototxt [-output NET.svg] [flags]",
               .example = "crema draw models/lenet/digits_train_val.prototxt -output lenet.svg",
               .meanings = {{"output", "The file to write. Empty: the standard output."}},
               .min_arguments = 1,
               .max_arguments = 1,
               .log = LogStyle::brief,
               .run = run_draw});

}  // namespace

}  // namespace crema
