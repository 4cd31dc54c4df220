// `crema draw NET.prototxt [-output NET.svg]`: draws a net.
#include <iostream>

#include "base/files.h"
#include "tools/flags/flags.h"
#include "tools/flags/net_flags.h"
#include "tools/pages/drawing/net_drawing.h"
#include "tools/verb.h"

namespace crema {

namespace {

int run_draw(const VerbCall& call) {
  NetFlags flags = net_flags(call.flags);
  flags.model = call.arguments[0];
  const NetInput input = read_model(call.log, flags, phase_of_flag(TRAIN));
  const std::string svg = net_svg(input, flags.model, call.log);
  if (FLAGS_output.empty()) {
    std::cout << svg << std::flush;
  } else {
    write_file_atomically(FLAGS_output, svg);
    call.log.info("Wrote " + FLAGS_output);
  }
  return 0;
}

REGISTER_VERB(draw,
              {.summary = "draws a net as SVG: layers, shapes, parameters, operations, memory",
               .usage = "NET.prototxt [-output NET.svg] [flags]",
               .example = "crema draw models/lenet/digits_train_val.prototxt -output lenet.svg",
               .flags = {"output", "phase", "level", "stage", "assume", "batch", "off", "set"},
               .meanings = {{"output", "The file to write. Empty: the standard output."}},
               .min_arguments = 1,
               .max_arguments = 1,
               .log = LogStyle::brief,
               .run = run_draw});

}  // namespace

}  // namespace crema
