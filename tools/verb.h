// Verb: one command of the program: `crema VERB ...`, or a link of the verb's name. Each is one
// source file without a header: a verb is known only by the entry that REGISTER_VERB adds.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/registry.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

struct VerbCall {
  std::vector<std::string> arguments;  // all except flags: as many as the verb accepts
  ProgramLog& log;
  std::set<std::string> given{};     // flags that the command itself names, not the environment
  FlagValues flags{};                // those of the environment and of the config file, too
  std::vector<std::string> words{};  // the whole command, with the program's name
};

// What a verb does, and the flags that it takes: those of its second parameter, a FlagsOf.
class VerbRun {
 public:
  using Run = int(const VerbCall& call);

  VerbRun() = default;
  VerbRun(Run* run) : run_(run) {}
  template <typename Flags>
  VerbRun(int (*run)(const VerbCall& call, const Flags& flags))
      : flags_(Flags::list()),
        run_([run](const VerbCall& call) { return run(call, Flags(call.flags)); }) {}

  const std::vector<std::string>& flags() const { return flags_; }  // in the order of -help
  int operator()(const VerbCall& call) const { return run_(call); }

 private:
  std::vector<std::string> flags_;
  std::function<Run> run_;
};

struct Verb {
  const char* summary = "";  // one line for `crema` alone
  const char* usage = "";    // the text after the verb's name, such as "[flags] IN OUT"
  const char* example = "";  // one command, or several in lines
  // Help for flags that mean something else here than in tools/flags/flags.def.
  std::map<std::string, std::string> meanings{};
  // Flags of one number that may be several here, separated by commas: VerbCall::flags has them all.
  std::set<std::string> lists{};
  size_t min_arguments = 0, max_arguments = 0;
  LogStyle log = LogStyle::plain;
  // Returns the exit code; throws Error for every failure.
  VerbRun run{};
};

struct VerbTag {};
using VerbRegistry = Registry<VerbTag, Verb>;

// At the end of a verb's file:
//   REGISTER_VERB(train, {.summary = "...", .usage = "...", .run = run_train});
#define REGISTER_VERB(name, ...)                              \
  [[maybe_unused]] static const bool registered_verb_##name = \
      crema::VerbRegistry::add(#name, crema::Verb __VA_ARGS__)

}  // namespace crema
