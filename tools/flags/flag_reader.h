// Reads flags from where people write them: the command line, a -flagfile, CREMA_FLAGS, and
// ~/.config/crema/flags. Knows gflags' names and types, and nothing of verbs.
#pragma once

#include <gflags/gflags.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace crema {

struct FlagUse {
  std::string name;
  std::optional<std::string> value;
  std::string where;  // "flags.txt:3: " or "CREMA_FLAGS: "; "" on the command line
};

struct FlagWords {
  std::vector<FlagUse> flags;          // in the order in which they count
  std::vector<std::string> arguments;  // what is no flag
};

// The values of the flags that were given anywhere, by name: one, or of -set, -sweep and the lists of
// a verb all.
using FlagValues = std::map<std::string, std::vector<std::string>>;

std::optional<gflags::CommandLineFlagInfo> lookup_flag(const std::string& name);
// -help and its forms, which gflags or people write.
bool asks_for_help(const std::string& name);

// Error for a flag without its value, and for a -flagfile that cannot be read. Unknown flags are
// returned without a value.
FlagWords flags_of_command_line(int argc, const char* const* argv);
// For a text that a shell would split into words; `where` begins the messages.
FlagWords flags_of_text(const std::string& text, const std::string& where);
FlagWords flags_of_environment();  // CREMA_FLAGS

// $XDG_CONFIG_HOME/crema/flags, by default ~/.config/crema/flags; "" if there is no home folder.
std::string config_file();
// Its flags; none if the file does not exist.
std::vector<FlagUse> flags_of_config_file();

}  // namespace crema
