#include "tools/settings_flag.h"

#include "base/error.h"
#include "tools/flags.h"

namespace crema {

std::string with_setting(const std::string& settings, const std::string& setting) {
  require(!trim(setting).empty(), "-set is empty; expected PATH=VALUE, such as base_lr=0.02");
  require(setting.find('\n') == std::string::npos, "-set '", setting,
          "' has several lines; give one -set for each setting");
  return settings.empty() ? setting : settings + "\n" + setting;
}

std::vector<std::string> settings_of_flag() { return split(FLAGS_set, '\n'); }

}  // namespace crema
