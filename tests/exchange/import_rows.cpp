// Writes the layer rows of tests/layers/rows as ONNX models, imports them, and compares what the
// imported nets compute:  import_rows [OPSET [nofold [NAME...]]]
// Prints a line for each row that differs or is refused, and how many there are; exit code 1 if one
// differs.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/files.h"
#include "exchange/onnx/export.h"
#include "exchange/onnx/import.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/net_text.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// Rows whose results cannot agree, and why.
const std::map<std::string, std::string> kKnown = {
    {"argmax_ties", "of equal values ArgMax takes the last one, TopK the first one"}};

struct Round {
  enum class Outcome { agrees, differs, refused, not_exported } outcome = Outcome::agrees;
  std::string why;
};

Round round_trip(const Row& row, Net& net, const OnnxOptions& options, const std::string& path,
                 bool prints) {
  OnnxModel made;
  try {
    made = export_onnx(net, options);
  } catch (const Error& error) {
    return {Round::Outcome::not_exported, error.what()};
  }
  set_row_inputs(net, row);
  net.forward(0);
  write_file_atomically(path, made.model.SerializeAsString());
  ImportedNet imported;
  try {
    imported = import_onnx(net.context(), read_onnx(path), {});
  } catch (const Error& error) {
    return {Round::Outcome::refused, error.what()};
  }
  if (prints) {
    std::cout << net_text(imported.net);
  }
  NetOptions of_imported;
  of_imported.state.set_phase(TEST);
  of_imported.keep_blobs = of_imported.row_major = true;
  Net again(net.context(), imported.net, of_imported);
  set_imported_weights(imported, &again);
  set_row_inputs(again, row);
  again.forward(0);
  for (const auto& [name, blob] : imported.outputs) {
    const Tensor expected = net.blob(name), found = again.blob(blob);
    if (expected.shape() != found.shape())
      return {Round::Outcome::differs,
              cat(name, " has shape ", found.shape().brief(), ", not ", expected.shape().brief())};
    const std::string difference =
        difference_of(to_floats(net.context(), expected), to_floats(net.context(), found),
                      std::max(1e-5, row.tolerance));
    if (!difference.empty()) return {Round::Outcome::differs, cat(name, " ", difference)};
  }
  return {};
}

std::string kind_of(const Row& row) {
  const size_t from = row.text.find('"') + 1;
  return row.text.substr(from, row.text.find('"', from) - from);
}

}  // namespace

int run_import_rows(int argc, char** argv) {
  std::cout << std::unitbuf;
  OnnxOptions options;
  if (argc > 1) options.opset = std::stoi(argv[1]);
  options.fold = argc < 3 || std::string(argv[2]) != "nofold";
  options.any_batch = false;
  const std::vector<std::string> only(argv + std::min(argc, 3), argv + argc);
  const std::string path =
      (std::filesystem::temp_directory_path() / cat("import_rows_", getpid(), ".onnx")).string();
  std::map<Round::Outcome, int> counts;
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    if (!row.error.empty()) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), row.id()) == only.end()) continue;
    Context context(Device::cpu);
    context.set_log(silent_log());
    const std::unique_ptr<Net> net = net_of_row(context, row);
    if (!net) continue;
    Round round;
    try {
      round = round_trip(row, *net, options, path, !only.empty());
    } catch (const Error& error) {
      round = {Round::Outcome::differs, error.what()};
    }
    const bool known = kKnown.count(row.id()) > 0;
    if (known && round.outcome == Round::Outcome::differs) continue;
    ++counts[round.outcome];
    if (round.outcome == Round::Outcome::differs)
      std::cout << "differs: " << row.id() << " (" << kind_of(row) << "): " << round.why << '\n';
    if (round.outcome == Round::Outcome::refused)
      std::cout << "refused: " << row.id() << " (" << kind_of(row)
                << "): " << round.why.substr(round.why.find(": ") + 2) << '\n';
  }
  std::filesystem::remove(path);
  std::cout << counts[Round::Outcome::agrees] << " agree, " << counts[Round::Outcome::differs]
            << " differ, " << counts[Round::Outcome::refused] << " are refused; "
            << counts[Round::Outcome::not_exported] << " cannot be exported\n";
  return counts[Round::Outcome::differs] > 0;
}

}  // namespace crema
