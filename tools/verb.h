// A verb is one job of the program: `crema VERB ...`, or a link of the verb's name. One source file
// each, no header: a verb is known only by the entry that REGISTER_VERB makes.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"
#include "tools/program_log.h"

namespace crema {

struct VerbCall {
  std::vector<std::string> arguments;  // what is not a flag: as many as the verb says
  ProgramLog& log;
};

struct Verb {
  const char* summary = "";          // one line for `crema` alone
  const char* usage = "";            // what follows the verb's name, such as "[flags] IN OUT"
  std::vector<std::string> flags{};  // those of tools/flags.h that it takes
  size_t least_arguments = 0, most_arguments = 0;
  // Gives the exit code; throws Error for everything that goes wrong.
  int (*run)(const VerbCall& call) = nullptr;
};

struct VerbTag {};
using VerbRegistry = Registry<VerbTag, Verb>;

// At the end of a verb's file:
//   REGISTER_VERB(train, {.summary = "...", .usage = "...", .flags = {"solver"}, .run = run});
#define REGISTER_VERB(name, ...)                              \
  [[maybe_unused]] static const bool registered_verb_##name = \
      crema::VerbRegistry::add(#name, crema::Verb __VA_ARGS__)

}  // namespace crema
