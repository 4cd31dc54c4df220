#include "tools/runs/run_record.h"

#include <gflags/gflags.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/host_name.h"
#include "solver/run_identity.h"
#include "tools/settings_flag.h"
#include "tools/shell_words.h"
#include "tools/verb.h"

namespace crema {

namespace {

using Record = nlohmann::ordered_json;

// Those that are not their defaults, from wherever they were set.
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

Record read_record(const std::string& path) {
  Record record = Record::parse(read_text(path), nullptr, false);
  require(record.is_object(), path,
          ": expected one JSON object, as `crema train -run` writes it; remove the file, or name "
          "another folder");
  return record;
}

void write_record(const std::string& path, const Record& record) {
  // Names of files need not be UTF-8, which JSON asks for.
  write_file_atomically(path, record.dump(2, ' ', false, Record::error_handler_t::replace) + "\n");
}

}  // namespace

void write_run_record(const std::string& path) { write_record(path, start_now()); }

void complete_run_record(const std::string& path, const RunStartRecord& start) {
  Record record = read_record(path);
  Record now = start_now();
  Record& entry = start.resumed ? now : record;
  entry["net"] = start.net;
  entry["device"] = start.device;
  entry["seed"] = start.seed;
  if (start.resumed) {
    entry["iteration"] = start.iteration;
    record["resumptions"].push_back(entry);
  }
  write_record(path, record);
}

std::string described_run(const std::string& path) {
  const Record record = read_record(path);
  return cat("started ", record.value("started", "at a time unknown"), " on ",
             record.value("host", "a machine unknown"));
}

}  // namespace crema
