#include "tools/flags/switches.h"

#include <algorithm>

#include "base/error.h"
#include "tools/flags/flags.h"

namespace crema {

Switches switches_of_flag() {
  Switches switches;
  const std::vector<std::pair<std::string, bool*>> known = {
      {"fuse", &switches.fuse},           {"format", &switches.format},
      {"memory", &switches.memory},       {"overlap", &switches.overlap},
      {"recompute", &switches.recompute}, {"resident", &switches.resident},
      {"capture", &switches.capture}};
  std::vector<std::string> names;
  for (const auto& [name, on] : known) names.push_back(name);
  for (const std::string& part : split(FLAGS_off, ',')) {
    const std::string wanted(trim(part));
    const auto found = std::find(names.begin(), names.end(), wanted);
    require(found != names.end(), "-off ", FLAGS_off, ": there is no \"", wanted, "\"",
            did_you_mean(wanted, names), "; it takes ", join(names, ", "));
    *known[found - names.begin()].second = false;
  }
  return switches;
}

void set_passes(NetOptions* options) {
  const Switches switches = switches_of_flag();
  options->fuse = switches.fuse;
  options->format = switches.format;
  options->reuse_memory = switches.memory;
  options->overlap = switches.overlap;
  require(FLAGS_recompute == "auto" || FLAGS_recompute == "all", "-recompute ", FLAGS_recompute,
          ": expected auto or all (-off recompute: nothing)");
  if (!switches.recompute) options->recompute = Recompute::off;
  if (FLAGS_recompute == "auto") return;
  require(switches.recompute, "-recompute all and -off recompute contradict each other");
  options->recompute = Recompute::all;
  options->overlap = false;  // which keeps values for longer
}

}  // namespace crema
