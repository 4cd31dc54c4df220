#include "tools/flags/old_programs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace crema {

namespace {

constexpr const char* kRanks = "mpirun, Slurm and torchrun start the ranks of a training";

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

std::string verb_of_other_caffe(const std::string& verb, std::vector<FlagUse>& flags) {
  if (verb != "test_detection") return verb;
  // NVIDIA's, with that verb's defaults before the flags that are given.
  flags.insert(flags.begin(), {{"detection", "true", ""},
                               {"ap_version", "11point", ""},
                               {"show_per_class_result", "true", ""}});
  return "test";
}

const char* instead_of_verb(const std::string& verb) {
  if (verb == "collect")
    return "`crema extract_features` writes blobs to files, `crema compare` runs a net in two ways "
           "and shows where they differ";
  if (verb == "data_server" || verb == "param_server") return kRanks;
  return nullptr;
}

const char* instead_of_flag(const std::string& name) {
  static const std::set<std::string> of_compare = {"collect_dir",      "compare_output_dir",
                                                   "epsilon",          "fast_compare",
                                                   "fast_compare_max", "buffer_filler"};
  static const std::set<std::string> of_ranks = {"n_group", "n_server", "listen_address",
                                                 "comm_threads"};
  if (of_compare.count(name)) return "`crema help compare` shows how two ways are compared";
  return of_ranks.count(name) ? kRanks : nullptr;
}

const char* flag_without_effect(const std::string& name) {
  if (name == "engine") return "the fastest implementation is measured";
  if (name == "param_server") return kRanks;
  return nullptr;
}

}  // namespace crema
