#include "exchange/c/trained_weights.h"

#include <cmath>
#include <cstring>
#include <set>

#include "base/files.h"
#include "base/sha256.h"
#include "base/visible.h"
#include "exchange/onnx/layer_export.h"
#include "layers/norm/batch_norm_fields.h"

namespace crema {

namespace {

void check_propagation(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const LayerParameter& layer = node.message;
    for (int i = 0; i < layer.propagate_down_size(); ++i)
      require(layer.propagate_down(i) || !graph.values[node.bottoms[i]].needs_diff,
              node.place.where, ": layer \"", layer.name(),
              "\": propagate_down: false is not written as C; freeze the layers below with param { "
              "lr_mult: 0 }");
  }
}

// The parameters that forward passes of training change: statistics of batches, also in frozen layers.
std::set<int> measured_parameters(const Graph& graph) {
  std::set<int> measured;
  for (const Node& node : graph.nodes) {
    if (node.message.type() != "BatchNorm" ||
        uses_stored_statistics(node.message.batch_norm_param(), true))
      continue;
    for (const int parameter : node.parameters)
      if (!graph.parameters[parameter].learned) measured.insert(parameter);
  }
  return measured;
}

}  // namespace

std::vector<CTrainedParameter> trained_parameters(const Net& net) {
  const Graph& graph = net.graph();
  check_propagation(graph);
  const std::set<int> measured = measured_parameters(graph);
  std::set<int> reached;
  for (const Node& node : graph.nodes)
    if (node.backward) reached.insert(node.parameters.begin(), node.parameters.end());
  std::vector<CTrainedParameter> trained;
  bool learns = false;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    const int id = static_cast<int>(i);
    const bool learned = parameter.learned && parameter.lr_mult != 0 && reached.count(id) > 0;
    learns = learns || learned;
    if (!learned && measured.count(id) == 0) continue;
    const float* const values = parameter.data.data<float>();
    trained.push_back({parameter_key(parameter),
                       parameter.shape,
                       {values, values + parameter.data.count()},
                       parameter.lr_mult,
                       parameter.decay_mult,
                       !learned});
  }
  require(learns, "no layer of the net is trained: all have lr_mult: 0, or none leads to a loss");
  return trained;
}

float mark_of(const std::vector<CTrainedParameter>& trained) {
  std::string text;
  for (const CTrainedParameter& parameter : trained)
    text += cat(parameter.key, " ", parameter.shape.brief(), "\n");
  const Sha256::Digest digest = sha256(text);
  return static_cast<float>(digest[0] << 16 | digest[1] << 8 | digest[2]);
}

void load_trained_weights(const std::string& path, Net& training) {
  const std::vector<CTrainedParameter> trained = trained_parameters(training);
  size_t count = 0;
  for (const CTrainedParameter& parameter : trained) count += parameter.values.size();
  const std::string bytes = read_file(path), name = visible(path);
  const size_t expected = (count + 1) * sizeof(float);
  require(bytes.size() >= expected, name, " has ", bytes.size(), " bytes, but expected are ",
          expected, ": the ", count,
          " weights that training changes and a mark, 4 bytes each. Store the whole array "
          "NET_trained, and name the net and the solver that were exported");
  std::vector<float> values(count + 1);
  std::memcpy(values.data(), bytes.data(), expected);
  require(values[count] == mark_of(trained), name, " does not have the mark ",
          static_cast<int64_t>(mark_of(trained)), " behind ", count,
          " weights, so these are of other layers. Name the net and the solver that were exported");
  for (size_t i = 0, at = 0; i < trained.size(); at += trained[i++].values.size())
    for (size_t k = at; k < at + trained[i].values.size(); ++k)
      require(std::isfinite(values[k]), name, ": parameter ", trained[i].key, " has the value ",
              values[k], ", so training has diverged; use weights that were stored earlier");
  size_t at = 0;
  for (const CTrainedParameter& parameter : trained) {
    for (Parameter& other : training.parameters())
      if (parameter_key(other) == parameter.key)
        from_floats(training.context(), values.data() + at, other.data);
    at += parameter.values.size();
  }
  training.parameters_changed();
}

}  // namespace crema
