#include "tools/runs/run_record_file.h"

#include "base/error.h"
#include "base/files.h"

namespace crema {

RunRecordJson read_run_record(const std::string& path) {
  const RunRecordJson record = RunRecordJson::parse(read_text(path), nullptr, false);
  constexpr const char* kInstead = "; remove the file, or name another folder";
  require(record.is_object(), path, ": expected one JSON object, as `crema train -run` writes it",
          kInstead);
  const auto expect = [&](const char* name, const char* type) {
    if (!record.contains(name) || record.at(name).type_name() == std::string(type)) return;
    fail(path, ": \"", name, "\" is a ", record.at(name).type_name(), "; expected a JSON ", type,
         kInstead);
  };
  for (const char* name : {"started", "host"}) expect(name, "string");
  for (const char* name : {"ranks", "seed"}) expect(name, "number");
  expect("resumptions", "array");
  return record;
}

void write_run_record(const std::string& path, const RunRecordJson& record) {
  // File names need not be UTF-8, which JSON requires.
  write_file_atomically(path,
                        record.dump(2, ' ', false, RunRecordJson::error_handler_t::replace) + "\n");
}

std::string described_run(const std::string& path) {
  const RunRecordJson record = read_run_record(path);
  return cat("started ", record.value("started", "at a time unknown"), " on ",
             record.value("host", "a machine unknown"));
}

}  // namespace crema
