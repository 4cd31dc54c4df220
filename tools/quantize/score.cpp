#include "tools/quantize/score.h"

#include <cmath>

#include "base/error.h"
#include "proto/layer.pb.h"
#include "proto/params/loss.pb.h"
#include "proto/solver.pb.h"
#include "solver/test/test_scores.h"

namespace crema {
namespace {

bool detects(const Net& net) {
  for (const Node& node : net.graph().nodes)
    if (node.message.type() == "DetectionEvaluate") return true;
  return false;
}

// The top of the accuracy to report; "": there is none.
std::string accuracy_of(const Net& net) {
  std::string found;
  for (const Node& node : net.graph().nodes) {
    if (node.message.type() != "Accuracy" || node.message.top_size() == 0) continue;
    const bool is_first = node.message.accuracy_param().top_k() == 1;
    if (found.empty() || is_first) found = node.message.top(0);
    if (is_first) break;
  }
  return found;
}

}  // namespace

std::string Score::text() const {
  char digits[32];
  std::snprintf(digits, sizeof digits, is_share ? "%.4f" : "%.5g", value);
  return cat(name, " ", digits);
}

Score score_of(Net& net, int64_t batches) {
  SolverParameter evaluation;
  const bool is_detector = detects(net);
  if (is_detector) evaluation.set_eval_type("detection");
  TestScores scores(evaluation, net);
  double loss = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    net.forward(static_cast<uint64_t>(batch));
    loss += net.loss() / static_cast<double>(batches);
    scores.add();
  }
  const std::string accuracy = accuracy_of(net);
  Score score{"loss", loss, false};
  for (const OutputValue& output : scores.outputs()) {
    if (!is_detector && output.name != accuracy) continue;
    score = {output.name, output.value, true};
    break;
  }
  require(!std::isnan(score.value), score.name, " is nan in the net's tests");
  return score;
}

}  // namespace crema
