#include "net/class_scores.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/databases/class_names.h"
#include "layers/layer_facts.h"

namespace crema {

namespace {

// One row of scores for each image; C x 1 x 1 is a row, too.
bool has_rows(const Shape& shape, int64_t batch) {
  return shape.axes() >= 2 && shape[0] == batch && shape.count(2) == 1;
}

bool is_probability(const Graph& graph, const std::string& blob) {
  const LayerFacts facts = facts_of(producing_type(graph, blob));
  return facts.kind == LayerKind::activation && facts.least == 0 && facts.most == 1;
}

}  // namespace

std::string producing_type(const Graph& graph, const std::string& blob) {
  const auto value = std::find_if(graph.values.rbegin(), graph.values.rend(),
                                  [&](const Value& other) { return other.blob == blob; });
  if (value == graph.values.rend() || value->producer < 0) return "";
  return graph.nodes[value->producer].message.type();
}

ScoreBlob find_scores(Net& net, const std::string& blob, int64_t batch,
                      const std::string& setting) {
  if (!blob.empty()) {
    const Shape shape = net.blob(blob).shape();
    require(has_rows(shape, batch), setting, " ", blob, ": its shape is ", shape.brief(),
            "; expected ", batch, " rows of scores, one for each image");
    return {blob, shape.count(1)};
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
       " with a row of scores for each image: ", join(outputs, ", "), "; name the blob: ", setting,
       " NAME");
}

std::vector<std::string> class_names(const std::string& file, bool is_asked, int64_t classes,
                                     const std::string& setting, Log& log) {
  if (file.empty()) return {};
  if (!is_asked && !file_exists(file)) {
    log.warning(cat(file, ": there is no such file of class names; give one with ", setting));
    return {};
  }
  const ClassNames names = read_class_names(file);
  if (classes > 0) require_count(names, classes, "the net");
  if (!is_asked) log.info("The class names come from " + file);
  return names.names;
}

}  // namespace crema
