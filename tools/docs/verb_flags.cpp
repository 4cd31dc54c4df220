#include "tools/docs/verb_flags.h"

#include "tools/flags/flag_reader.h"

namespace crema {

std::vector<VerbFlag> flags_of(const Verb& verb) {
  std::vector<std::string> names = verb.run.flags();
  names.insert(names.end(), {"quiet", "layers"});
  std::vector<VerbFlag> flags;
  for (const std::string& name : names) {
    const auto info = lookup_flag(name);
    const auto own = verb.meanings.find(name);
    flags.push_back({name, info->type, info->default_value,
                     own == verb.meanings.end() ? info->description : own->second});
  }
  return flags;
}

}  // namespace crema
