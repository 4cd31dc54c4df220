#include <climits>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/upgrade_strip.h"
#include "net/weights/weights.h"
#include "net/weights/wire_writer.h"

namespace crema {
namespace {

// A layer's message as Caffe has it after setting the net up.
LayerParameter completed(const Net& net, int i) {
  const Graph& graph = net.graph();
  LayerParameter layer = graph.net.layer(i);
  layer.clear_blobs();
  if (!layer.has_phase()) layer.set_phase(net.training() ? TRAIN : TEST);
  const bool is_loss =
      !graph.views[i].tops.empty() && graph.values[graph.views[i].tops[0]].loss_weight != 0;
  if (is_loss && layer.loss_weight_size() == 0) layer.add_loss_weight(1);
  const std::vector<int>& parameters = graph.views[i].parameters;
  for (int k = layer.param_size(); k < static_cast<int>(parameters.size()); ++k) {
    if (!graph.parameters[parameters[k]].learned) layer.add_param()->set_lr_mult(0);
  }
  strip_fork_fields(&layer);
  return layer;
}

void check_size(const std::string& path, uint64_t bytes) {
  require(bytes <= INT_MAX, path, ": the weights take ", bytes,
          " bytes, but a .caffemodel cannot be larger than 2 GiB: write "
          "HDF5 (snapshot_format: HDF5 in the solver)");
}

}  // namespace

WeightsContent weights_content(const Net& net, bool gradients) {
  const Graph& graph = net.graph();
  WeightsContent content;
  if (graph.net.has_name()) content.net.set_name(graph.net.name());
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    if (!graph.net.layer(i).stored()) continue;
    *content.net.add_layer() = completed(net, i);
    content.parameters_of_layer.push_back(graph.views[i].parameters);
  }
  for (const Parameter& parameter : graph.parameters)
    content.parameters.push_back(
        {parameter.layer, parameter.index, parameter.data, gradients ? parameter.diff : Tensor()});
  return content;
}

std::set<int> stored_parameters(const WeightsContent& content) {
  std::set<int> stored;
  for (const std::vector<int>& parameters : content.parameters_of_layer)
    stored.insert(parameters.begin(), parameters.end());
  return stored;
}

uint64_t bytes_of_values(const WeightsContent& content, bool hdf5) {
  uint64_t bytes = 0;
  const auto add = [&](const WeightsContent::Values& values) {
    bytes += static_cast<uint64_t>(values.data.count()) * size_of(values.data.dtype()) *
             (values.diff ? 2 : 1);
  };
  if (hdf5) {
    for (const int id : stored_parameters(content)) add(content.parameters[id]);
    return bytes;
  }
  for (const std::vector<int>& parameters : content.parameters_of_layer) {
    for (const int id : parameters) add(content.parameters[id]);
  }
  return bytes;
}

void save_caffemodel(Net& net, const std::string& path, bool gradients) {
  write_caffemodel(net.context(), weights_content(net, gradients), path);
}

void write_caffemodel(Context& context, const WeightsContent& content, const std::string& path) {
  check_size(path, bytes_of_values(content, false));
  AtomicFile file(path);
  const auto write = [&](const void* bytes, size_t count) { file.write(bytes, count); };
  uint64_t bytes = 0;
  const auto write_field = [&](int number, const WireMessage& value) {
    const std::string header = wire_header(number, value.size());
    bytes += header.size() + value.size();
    check_size(path, bytes);
    write(header.data(), header.size());
    value.write(context, write);
  };
  if (content.net.has_name())
    write_field(NetParameter::kNameFieldNumber, WireMessage(content.net.name()));
  for (int i = 0; i < content.net.layer_size(); ++i) {
    WireMessage layer(content.net.layer(i).SerializeAsString());
    for (const int id : content.parameters_of_layer[i])
      layer.add_blob(LayerParameter::kBlobsFieldNumber, content.parameters[id].data,
                     content.parameters[id].diff);
    write_field(NetParameter::kLayerFieldNumber, layer);
  }
  file.commit();
}

}  // namespace crema
