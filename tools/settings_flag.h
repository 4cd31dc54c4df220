// -set PATH=VALUE, which may be given several times: FLAGS_set holds one setting a line.
#pragma once

#include <string>
#include <vector>

namespace crema {

// `settings`, the flag's value so far, with one more. Error for an empty one and for one of several
// lines.
std::string with_setting(const std::string& settings, const std::string& setting);

// "base_lr=0.02", "depth=50" ... in the order config file, environment, command line.
std::vector<std::string> settings_of_flag();

}  // namespace crema
