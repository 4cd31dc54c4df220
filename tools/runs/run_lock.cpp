#include "tools/runs/run_lock.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/system.h"
#include "device/device_scope.h"
#include "solver/events/run_identity.h"
#include "solver/fields/solver_nets.h"
#include "tools/devices.h"
#include "tools/runs/data_sets.h"
#include "tools/runs/loaded_libraries.h"
#include "tools/runs/run_record_file.h"

namespace crema {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (starts_with(line, "model name") && line.find(':') != std::string::npos)
      return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "";
}

// The widest instructions of the processor, by which libraries choose their kernels.
std::string instruction_set() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return __builtin_cpu_supports("avx") ? "AVX" : "SSE";
#else
  return "";
#endif
}

RunLock machine_of(const Context& context) {
  RunLock machine = {{"host", host_name()},
                     {"processor", processor()},
                     {"instruction_set", instruction_set()},
                     {"threads", cpu_threads()},
                     {"device", "CPU"}};
  if (context.device() == Device::gpu) {
    machine["device"] = cat("GPU ", context.ordinal());
    machine["gpu"] = gpu_name(context.ordinal());
    machine["driver"] = gpu_driver();
  }
  if (context.ranks() > 1) machine["ranks"] = context.ranks();
  return machine;
}

RunLock flags_of(const FlagValues& values, Precision precision) {
  const FlagsOf<"deterministic", "off", "implementation", "tune", "recompute"> flags(values);
  return {{"precision", name_of(precision)},
          {"deterministic", flags.deterministic},
          {"off", flags.off},
          {"implementation", flags.implementation},
          {"tune", flags.tune},
          {"recompute", flags.recompute}};
}

RunLock environment_now() {
  RunLock found = RunLock::object();
  for (const char* name :
       {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "OPENBLAS_CORETYPE",
        "MKL_CBWR", "NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO", "NCCL_PROTO"}) {
    if (const std::string value = environment(name); !value.empty()) found[name] = value;
  }
  return found;
}

// "" where there is none; numbers as text.
std::string text_at(const RunLock& json, const std::string& name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (!json.is_object() || found == json.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

RunLock part(const RunLock& lock, const char* name) {
  return lock.is_object() && lock.contains(name) ? lock.at(name) : RunLock();
}

RunLock json_of(const DataSet& set) {
  const DataSetContent known = content_of(set);
  RunLock json = {
      {"layer", set.layer}, {"field", set.field}, {"kind", known.kind}, {"path", set.path}};
  if (known.kind == "list") {
    if (!set.roots.empty()) json["roots"] = set.roots;
    json["folder"] = set.folder;
  }
  json["bytes"] = known.content.bytes;
  json["files"] = known.files;
  if (!known.content.sampled.empty()) json["sampled"] = known.content.sampled;
  if (known.content.problem.empty()) {
    json["hash"] = known.content.hash;
  } else {
    json["problem"] = known.content.problem;
  }
  return json;
}

// Each is read once, however many layers name it.
RunLock json_of(const std::vector<DataSet>& sets) {
  RunLock all = RunLock::array();
  std::map<std::string, RunLock> known;
  for (const DataSet& set : sets) {
    const auto [one, added] = known.try_emplace(join(set.roots, "\n") + "\n" + set.path);
    if (added) one->second = json_of(set);
    RunLock json = one->second;
    json["layer"] = set.layer;
    json["field"] = set.field;
    all.push_back(json);
  }
  return all;
}

std::string shown(const std::string& value) { return value.empty() ? "empty" : value; }

using Names = std::vector<std::pair<std::string, std::string>>;  // of members, and in messages

void compare(const RunLock& was, const RunLock& is, const Names& names,
             std::vector<std::string>* found) {
  for (const auto& [name, what] : names) {
    if (!was.is_object() || !is.is_object() || !was.contains(name) || !is.contains(name)) continue;
    const std::string before = text_at(was, name), now = text_at(is, name);
    if (before != now)
      found->push_back(cat(what, " is ", shown(now), " (was ", shown(before), ")"));
  }
}

Names names_in(const RunLock& part, const std::string& prefix) {
  Names names;
  if (!part.is_object()) return names;
  for (const auto& [name, value] : part.items()) names.emplace_back(name, prefix + name);
  return names;
}

// A variable that only one of them had counts.
void compare_environment(RunLock was, RunLock is, std::vector<std::string>* found) {
  if (!was.is_object() || !is.is_object()) return;
  for (const auto& [name, value] : was.items()) is.emplace(name, "");
  for (const auto& [name, value] : is.items()) was.emplace(name, "");
  compare(was, is, names_in(was, ""), found);
}

std::string difference_of_data(const RunLock& was, const RunLock& is) {
  const std::string path = text_at(is, "path");
  const std::string what = cat(text_at(is, "kind") == "file" ? "the file " : "the data set ", path);
  const std::string before = text_at(was, "hash"), now = text_at(is, "hash");
  if (before == now) return "";
  if (now.empty()) return cat(what, " cannot be compared: ", text_at(is, "problem"));
  if (before.empty()) return cat(what, " could not be read then: ", text_at(was, "problem"));
  const std::string old_path = text_at(was, "path");
  return cat(what, " has other content (was ", before,
             old_path == path ? std::string() : " of " + old_path, ", is ", now, ")");
}

void compare_data(const RunLock& was, const RunLock& is, std::vector<std::string>* found) {
  if (!was.is_array() || !is.is_array()) return;
  const auto key = [](const RunLock& one) {
    return text_at(one, "layer") + " " + text_at(one, "field");
  };
  std::map<std::string, RunLock> before;
  for (const RunLock& one : was) before[key(one)] = one;
  for (const RunLock& one : is) {
    const auto other = before.find(key(one));
    if (other == before.end()) {
      found->push_back(cat("the data set ", text_at(one, "path"), " is new"));
      continue;
    }
    const std::string difference = difference_of_data(other->second, one);
    // Layers may share a data set.
    if (!difference.empty() && std::find(found->begin(), found->end(), difference) == found->end())
      found->push_back(difference);
    before.erase(other);
  }
  for (const auto& [name, one] : before)
    found->push_back(cat("the data set ", text_at(one, "path"), " is gone"));
}

}  // namespace

RunLock lock_of_program(const Context& context, Precision precision, const FlagValues& flags) {
  RunLock libraries = RunLock::object();
  for (const auto& [name, version] : loaded_libraries()) libraries[name] = version;
  return {{"program", {{"version", CREMA_VERSION}, {"built_with", CREMA_BUILT_WITH}}},
          {"libraries", libraries},
          {"machine", machine_of(context)},
          {"flags", flags_of(flags, precision)},
          {"environment", environment_now()}};
}

RunLock lock_of_recipe(const SolverFile& file) {
  SolverParameter solver = file.solver;
  // Names of files; other members of the lock; and what changes no value.
  for (const char* field :
       {"net", "train_net", "test_net", "weights", "snapshot_prefix", "random_seed", "solver_mode",
        "device_id", "precision", "display", "snapshot", "snapshot_format"})
    solver.GetReflection()->ClearField(&solver,
                                       SolverParameter::descriptor()->FindFieldByName(field));
  return {{"net", hash_of_text(open_net(file, train_source(file)).net)},
          {"solver", hash_of_recipe({}, solver)},
          {"seed", file.solver.random_seed()}};
}

RunLock lock_of_data(const RunLock& recorded) {
  std::vector<DataSet> sets;
  if (recorded.is_array()) {
    for (const RunLock& one : recorded) {
      DataSet set{text_at(one, "layer"),
                  text_at(one, "field"),
                  text_at(one, "path"),
                  {},
                  text_at(one, "folder")};
      for (const RunLock& root : part(one, "roots"))
        if (root.is_string()) set.roots.push_back(root);
      sets.push_back(std::move(set));
    }
  }
  return json_of(sets);
}

void write_run_lock(const std::string& folder, const LockedStart& locked, Solver& solver) {
  const SolverFile file = read_solver_file(folder + "/solver.prototxt");
  const Net& net = solver.net();
  RunLock start = lock_of_recipe(file);
  std::vector<DataSet> sets = data_sets_of(net.graph().net, net.options().folder);
  for (const std::string& path : {file.solver.teacher().net(), file.solver.teacher().weights()}) {
    if (!path.empty()) sets.push_back({"", "teacher", find_file(path, locked.folder), {}, ""});
  }
  const std::vector<std::string> weights(file.solver.weights().begin(),
                                         file.solver.weights().end());
  start["weights"] = {{"files", join(weights, ",")}, {"hash", hash_of_weights(solver.net())}};
  start["data"] = json_of(sets);
  start.update(lock_of_program(net.context(), net.options().precision, locked.flags));
  RunLock lock = start;
  const std::string path = folder + "/run.lock";
  if (locked.resumed) {
    start["iteration"] = solver.iteration();
    // A run from before there was this file has no first start in it.
    lock = read_run_lock(path).value_or(RunLock::object());
    lock["resumed"].push_back(start);
  }
  write_run_record(path, lock);
}

std::optional<RunLock> read_run_lock(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  RunLock lock = RunLock::parse(read_text(path), nullptr, false);
  const RunLock resumed = part(lock, "resumed");
  const bool whole = lock.is_object() && (resumed.is_null() || resumed.is_array()) &&
                     std::all_of(resumed.begin(), resumed.end(), [](const RunLock& one) {
                       return part(one, "iteration").is_number_integer();
                     });
  return whole ? std::optional(std::move(lock)) : std::nullopt;
}

RunLock last_start(const RunLock& lock) {
  const RunLock resumed = part(lock, "resumed");
  return resumed.is_array() && !resumed.empty() ? resumed.back() : lock;
}

std::vector<std::string> lock_differences(const RunLock& was, const RunLock& is) {
  std::vector<std::string> found;
  const auto hash = [&](const std::string& before, const std::string& now, const char* text) {
    if (!before.empty() && !now.empty() && before != now)
      found.push_back(cat(text, " (was ", before, ", is ", now, ")"));
  };
  hash(text_at(was, "net"), text_at(is, "net"), "the net has another text");
  hash(text_at(was, "solver"), text_at(is, "solver"), "the solver has another text");
  compare(was, is, {{"seed", "the seed"}}, &found);
  hash(text_at(part(was, "weights"), "hash"), text_at(part(is, "weights"), "hash"),
       "the weights at the start have other values");
  compare_data(part(was, "data"), part(is, "data"), &found);
  compare(part(was, "machine"), part(is, "machine"),
          {{"device", "the device"},
           {"gpu", "the GPU"},
           {"driver", "the GPU's driver"},
           {"threads", "threads"},
           {"ranks", "ranks"},
           {"processor", "the processor"},
           {"instruction_set", "the instruction set"},
           {"host", "the machine"}},
          &found);
  compare(part(was, "program"), part(is, "program"),
          {{"version", "the version"}, {"built_with", "the build"}}, &found);
  compare(part(was, "libraries"), part(is, "libraries"), names_in(part(was, "libraries"), ""),
          &found);
  compare(part(was, "flags"), part(is, "flags"), names_in(part(was, "flags"), "-"), &found);
  compare_environment(part(was, "environment"), part(is, "environment"), &found);
  return found;
}

}  // namespace crema
