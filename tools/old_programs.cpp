#include "tools/old_programs.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace crema {

namespace {

struct OldProgram {
  const char* verb;
  std::vector<const char*> flags;  // of the arguments in their order
};

}  // namespace

std::string verb_of_old_program(const std::string& program, std::vector<std::string>& arguments,
                                std::vector<FlagUse>& flags) {
  static const std::map<std::string, OldProgram> programs = {
      {"train_net", {"train", {"solver", "snapshot"}}},
      {"finetune_net", {"train", {"solver", "weights"}}},
      {"test_net", {"test", {"model", "weights", "iterations"}}},
      {"net_speed_benchmark", {"time", {"model", "iterations"}}}};
  const auto found = programs.find(program);
  if (found == programs.end()) return "";
  const OldProgram& old = found->second;
  // The device comes last: CPU, or GPU and its number.
  const auto device = std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "CPU" || word == "GPU";
  });
  if (device != arguments.end() && *device == "GPU")
    flags.push_back({"gpu", device + 1 == arguments.end() ? "0" : *(device + 1), ""});
  arguments.erase(device, arguments.end());
  for (size_t i = 0; i < arguments.size() && i < old.flags.size(); ++i)
    flags.push_back({old.flags[i], arguments[i], ""});
  arguments.erase(arguments.begin(), arguments.begin() + static_cast<int64_t>(std::min(
                                                             arguments.size(), old.flags.size())));
  return old.verb;
}

const char* flag_without_effect(const std::string& name) {
  if (name == "engine") return "the fastest implementation is measured";
  if (name == "param_server") return "mpirun, Slurm and torchrun start the ranks of a training";
  return nullptr;
}

}  // namespace crema
