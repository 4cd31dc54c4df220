#include "tools/classify/class_scores.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "tools/flags.h"

namespace crema {

namespace {

// One row of scores for each image; C x 1 x 1 is a row, too.
bool has_rows(const Shape& shape, int64_t batch) {
  return shape.axes() >= 2 && shape[0] == batch && shape.count(2) == 1;
}

bool is_probability(const Graph& graph, const std::string& blob) {
  const auto value = std::find_if(graph.values.rbegin(), graph.values.rend(),
                                  [&](const Value& other) { return other.blob == blob; });
  if (value == graph.values.rend() || value->producer < 0) return false;
  const std::string& type = graph.nodes[value->producer].message.type();
  return type == "Softmax" || type == "Sigmoid";
}

}  // namespace

ScoreBlob find_scores(Net& net, int64_t batch) {
  if (!FLAGS_blob.empty()) {
    const Shape shape = net.blob(FLAGS_blob).shape();
    require(has_rows(shape, batch), "-blob ", FLAGS_blob, ": its shape is ", shape.brief(),
            "; expected ", batch, " rows of scores, one for each image");
    return {FLAGS_blob, shape.count(1)};
  }
  std::vector<ScoreBlob> rows, probabilities;
  std::vector<std::string> outputs;
  for (const Net::Output& output : net.outputs()) {
    const Shape& shape = output.value.shape();
    outputs.push_back(cat(visible(output.blob), " (", shape.brief(), ")"));
    if (!has_rows(shape, batch)) continue;
    rows.push_back({output.blob, shape.count(1)});
    if (is_probability(net.graph(), output.blob)) probabilities.push_back(rows.back());
  }
  if (probabilities.size() == 1) return probabilities[0];
  if (rows.size() == 1) return rows[0];
  fail("the net has ", rows.empty() ? "no output" : "several outputs",
       " with a row of scores for each image: ", join(outputs, ", "),
       "; name the blob: -blob NAME");
}

std::vector<std::string> class_names(const std::string& folder, int64_t classes, Log& log) {
  const std::string path = FLAGS_labels.empty() ? folder + "/labels.txt" : FLAGS_labels;
  if (FLAGS_labels.empty() && !file_exists(path)) return {};
  std::vector<std::string> names;
  for (const std::string& line : split(read_text(path), '\n')) names.emplace_back(trim(line));
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (static_cast<int64_t>(names.size()) == classes) {
    if (FLAGS_labels.empty()) log.info("The classes have the names in " + path);
    return names;
  }
  const std::string problem =
      cat(path, ": has ", names.size(), " lines, but the net has ", classes, " classes");
  require(FLAGS_labels.empty(), "-labels ", problem, "; expected one name a line");
  log.warning(problem + ": the classes have numbers only; -labels FILE names them");
  return {};
}

}  // namespace crema
