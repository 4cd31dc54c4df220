#include "solver/run_classes.h"

#include "net/source_files.h"
#include "proto/params/loss.pb.h"

namespace crema {

namespace {

// Of the first loss that compares scores with classes; 0: there is none.
int64_t classes_of_loss(const Graph& graph) {
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    if (layer.type() == "MultiBoxLoss") return layer.multibox_loss_param().num_classes();
    if (layer.type() != "SoftmaxWithLoss" || graph.views[i].bottoms.empty()) continue;
    const Shape& scores = graph.values[graph.views[i].bottoms[0]].shape;
    return scores[scores.canonical_axis(layer.softmax_param().axis())];
  }
  return 0;
}

}  // namespace

ClassNames class_names_of_run(const Net& net, Log& log) {
  ClassNames names = class_names_of(net.graph().net, net.options().folder);
  const int64_t classes = classes_of_loss(net.graph());
  if (names.empty() || classes == 0) return {};
  try {
    require_count(names, classes, "the net");
  } catch (const Error& problem) {
    log.warning(cat(problem.what(), ". This run goes on with numbers instead of names"));
    return {};
  }
  return names;
}

}  // namespace crema
