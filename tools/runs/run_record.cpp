#include "tools/runs/run_record.h"

#include <gflags/gflags.h>
#include <unistd.h>

#include <filesystem>

#include "base/strings.h"
#include "base/system.h"
#include "solver/events/run_identity.h"
#include "tools/flags/shell_words.h"
#include "tools/runs/run_record_file.h"
#include "tools/verb.h"

namespace crema {

namespace {

using Record = RunRecordJson;

// In the order in which the verb lists them.
Record record_of(const FlagValues& flags) {
  Record record = Record::object();
  for (const std::string& name : VerbRegistry::find("train")->run.flags()) {
    const auto given = flags.find(name);
    if (given == flags.end()) continue;
    if (name == "set") {
      record[name] = given->second;
    } else {
      record[name] = given->second[0];
    }
  }
  return record;
}

Record start_now(const FlagValues& flags) {
  std::vector<std::string> words;
  for (const std::string& word : gflags::GetArgvs()) words.push_back(shell_quoted(word));
  return {{"command", join(words, " ")},
          {"flags", record_of(flags)},
          {"folder", std::filesystem::current_path().string()},
          {"host", host_name()},
          {"pid", getpid()},
          {"started", utc_now()},
          {"version", CREMA_VERSION},
          {"built_with", CREMA_BUILT_WITH}};
}

}  // namespace

void write_run_record(const std::string& path, const FlagValues& flags) {
  write_run_record(path, start_now(flags));
}

void complete_run_record(const std::string& path, const FlagValues& flags,
                         const RunStartRecord& start) {
  Record record = read_run_record(path);
  Record now = start_now(flags);
  Record& entry = start.resumed ? now : record;
  entry["net"] = start.net;
  entry["device"] = start.device;
  entry["seed"] = start.seed;
  if (start.ranks > 1) entry["ranks"] = start.ranks;
  if (start.resumed) {
    entry["iteration"] = start.iteration;
    record["resumptions"].push_back(entry);
  }
  write_run_record(path, record);
}

}  // namespace crema
