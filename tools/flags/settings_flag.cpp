#include "tools/flags/settings_flag.h"

#include "base/error.h"
#include "tools/flags/flags.h"

namespace crema {

std::string with_setting(const std::string& flag, const std::string& settings,
                         const std::string& setting) {
  require(!trim(setting).empty(), "-", flag,
          " is empty; expected PATH=VALUE, such as base_lr=0.02");
  require(setting.find('\n') == std::string::npos, "-", flag, " '", setting,
          "' has several lines; give one -", flag, " for each setting");
  return settings.empty() ? setting : settings + "\n" + setting;
}

std::vector<std::string> settings_of_flag() { return split(FLAGS_set, '\n'); }

}  // namespace crema
