// The file run.json, as JSON: tools/runs/run_record.h describes its content.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace crema {

using RunRecordJson = nlohmann::ordered_json;

// Error when the file is damaged: not an object, or known members of other types.
RunRecordJson read_run_record(const std::string& path);
// Complete or not at all.
void write_run_record(const std::string& path, const RunRecordJson& record);

// "started 2026-01-31T12:00:00Z on HOST"; Error when the file is damaged.
std::string described_run(const std::string& path);

}  // namespace crema
