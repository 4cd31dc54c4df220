// `crema expand FILE.prototxt [-set NAME=VALUE]`: a net or solver with its includes, variables and
// repeats written out.
#include "net/expand/expand.h"

#include <iostream>

#include "base/files.h"
#include "net/prototxt/settings.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ExpandFlags = FlagsOf<"set">;

int run_expand(const VerbCall& call, const ExpandFlags& flags) {
  const std::string& path = call.arguments[0];
  Settings settings(flags.set);
  std::vector<std::string> used;
  const std::string text = expand(path, read_text(path), settings.variables(), &used).text();
  settings.note_used(used);
  settings.require_used();
  if (call.arguments.size() == 1) {
    std::cout << text << std::flush;
  } else {
    write_file_atomically(call.arguments[1], text);
  }
  return 0;
}

REGISTER_VERB(expand, {.summary = "writes a net or solver without includes, variables and repeats",
                       .usage = "FILE.prototxt [OUT] [-set NAME=VALUE]",
                       .example = "crema expand models/resnet/train_val.prototxt -set depth=18",
                       .meanings = {{"set",
                                     "Sets a variable or a field of the file, such as depth=18; "
                                     "may be given several times."}},
                       .min_arguments = 1,
                       .max_arguments = 2,
                       .run = run_expand});

}  // namespace

}  // namespace crema
