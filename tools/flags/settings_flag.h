// -set PATH=VALUE and -sweep PATH=VALUES, which may be given several times: FLAGS_set and
// FLAGS_sweep have one setting per line.
#pragma once

#include <string>
#include <vector>

namespace crema {

// `settings`, the value so far of the flag of this name, with one more. Error for an empty one and
// for one of several lines.
std::string with_setting(const std::string& flag, const std::string& settings,
                         const std::string& setting);

// "base_lr=0.02", "depth=50" ... in the order config file, environment, command line.
std::vector<std::string> settings_of_flag();

}  // namespace crema
