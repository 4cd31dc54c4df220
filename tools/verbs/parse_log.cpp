// `crema parse_log LOG [DIR]`: converts a training log to CSV files, as Caffe's parse_log.py does.
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "tools/runs/log_table.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ParseLogFlags = FlagsOf<"output">;

int run_parse_log(const VerbCall& call, const ParseLogFlags& flags) {
  const std::string& path = call.arguments[0];
  require(call.arguments.size() == 1 || flags.output.empty(), "the folder is given twice, as ",
          call.arguments.back(), " and as -output ", flags.output, ": once is enough");
  std::ifstream log(path);
  require(log.good() && !std::filesystem::is_directory(path), path,
          ": cannot be read; expected a training log");
  const LogTables tables = read_log(log);
  require(!tables.train.rows.empty() || !tables.tests.empty(), path,
          ": has no line such as \"Iteration 100, loss = 0.5\" or \"Train net output #0: loss = "
          "0.5\": expected a training log");
  const std::filesystem::path folder = call.arguments.size() > 1 ? call.arguments[1]
                                       : !flags.output.empty()
                                           ? flags.output
                                           : std::filesystem::path(path).parent_path().string();
  const std::string stem = (folder / std::filesystem::path(path).filename()).string();
  const auto write = [&](const std::string& name, const LogTable& table) {
    write_file_atomically(name, csv_of(table));
    call.log.info(
        cat("Wrote ", name, ": ", table.rows.size(), table.rows.size() == 1 ? " row" : " rows"));
  };
  if (!tables.train.rows.empty()) write(stem + ".train", tables.train);
  for (const auto& [net, table] : tables.tests)
    write(cat(stem, ".test", net == 0 ? "" : cat(net)), table);
  return 0;
}

REGISTER_VERB(parse_log,
              {.summary = "converts a training log to CSV tables, as Caffe does",
               .usage = "LOG [DIR]",
               .example = "crema parse_log runs/lenet-1/train.log tables/",
               .meanings = {{"output", "The folder of the tables. Empty: that of the log."}},
               .min_arguments = 1,
               .max_arguments = 2,
               .run = run_parse_log});

}  // namespace

}  // namespace crema
