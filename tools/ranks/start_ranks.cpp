#include "tools/ranks/start_ranks.h"

#include <glog/logging.h>

#include "base/visible.h"
#include "tools/flags/flag_reader.h"
#include "tools/ranks/rank_processes.h"

namespace crema {

int start_ranks(const std::vector<int>& gpus, const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> commands;
  for (const int gpu : gpus) {
    commands.push_back(arguments_for_gpu(gpu, words, [](const std::string& name) {
      const auto flag = lookup_flag(name);
      return flag && flag->type != "bool";
    }));
  }
  const RanksEnd end = run_ranks(commands);
  if (!end.message.empty()) LOG(ERROR) << visible(end.message);
  return end.code;
}

}  // namespace crema
