#include "tools/runs/run_record.h"

#include <gflags/gflags.h>
#include <unistd.h>

#include <filesystem>

#include "base/strings.h"
#include "base/system.h"
#include "solver/events/run_identity.h"
#include "tools/flags/settings_flag.h"
#include "tools/flags/shell_words.h"
#include "tools/runs/run_record_file.h"
#include "tools/verb.h"

namespace crema {

namespace {

using Record = RunRecordJson;

// Flags with other values than their defaults, wherever they were set.
Record flags_now() {
  Record flags = Record::object();
  for (const std::string& name : VerbRegistry::find("train")->flags) {
    const auto flag = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    if (flag.is_default) continue;
    if (name == "set") {
      flags[name] = settings_of_flag();
    } else {
      flags[name] = flag.current_value;
    }
  }
  return flags;
}

Record start_now() {
  std::vector<std::string> words;
  for (const std::string& word : gflags::GetArgvs()) words.push_back(shell_quoted(word));
  return {{"command", join(words, " ")},
          {"flags", flags_now()},
          {"folder", std::filesystem::current_path().string()},
          {"host", host_name()},
          {"pid", getpid()},
          {"started", utc_now()},
          {"version", CREMA_VERSION},
          {"built_with", CREMA_BUILT_WITH}};
}

}  // namespace

void write_run_record(const std::string& path) { write_run_record(path, start_now()); }

void complete_run_record(const std::string& path, const RunStartRecord& start) {
  Record record = read_run_record(path);
  Record now = start_now();
  Record& entry = start.resumed ? now : record;
  entry["net"] = start.net;
  entry["device"] = start.device;
  entry["seed"] = start.seed;
  if (start.resumed) {
    entry["iteration"] = start.iteration;
    record["resumptions"].push_back(entry);
  }
  write_run_record(path, record);
}

}  // namespace crema
