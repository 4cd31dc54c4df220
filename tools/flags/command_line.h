// The command line: the verb, its flags and its arguments.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/flags/flag_reader.h"

namespace crema {

struct CommandLine {
  std::string verb;  // "" when none is given
  std::vector<std::string> arguments;
  bool help = false, version = false;
  FlagValues flags;                     // wherever they were given
  std::set<std::string> given;          // flags of the command line itself
  std::vector<std::string> notes;       // which flags came from elsewhere, for the log
  std::vector<std::string> warnings{};  // which flags have no effect
};

// Parses argv. The verb is the program's own name (a link called `train`) or the first argument that
// is not a flag. Flags are `-flag value`, `--flag=value`, `-switch`, `-noswitch`; -flagfile reads
// more of them from a file. If a verb runs, the first flags are those of the config file and of
// CREMA_FLAGS (tools/flags/flag_reader.h) that it takes; a later flag replaces an earlier one, except
// for -set, which adds. Error for an unknown verb or flag (with the nearest name), a flag of another
// verb, a value of the wrong type, too many arguments.
CommandLine parse_command_line(int argc, const char* const* argv);

// Adds the flags in `text` to `flags`, as if they were on the command line. `place` begins the error
// messages: "-with". Error for a word that is no flag.
void add_flags(const std::string& text, const std::string& place, const std::string& verb,
               FlagValues* flags);

// The output of `crema` alone or `crema help`, and of `crema VERB -help` or `crema help VERB`.
std::string list_of_verbs();
std::string help_of(const std::string& verb);
// What help says of all verbs: which flags they share, and where flags come from.
std::string about_all_flags();

}  // namespace crema
