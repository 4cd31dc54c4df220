#include <climits>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/upgrade_strip.h"
#include "net/weights/weights.h"

namespace crema {
namespace {

void store(Context& context, const Tensor& data, const Tensor& diff, BlobProto* blob) {
  for (int64_t extent : data.shape().dims()) blob->mutable_shape()->add_dim(extent);
  blob->mutable_shape();  // a scalar has a shape too, with no extents
  if (data.dtype() == DType::f64) {
    const std::vector<double> values = to_doubles(context, data);
    blob->mutable_double_data()->Add(values.begin(), values.end());
    if (!diff) return;
    const std::vector<double> gradient = to_doubles(context, diff);
    blob->mutable_double_diff()->Add(gradient.begin(), gradient.end());
  } else {
    const std::vector<float> values = to_floats(context, data);
    blob->mutable_data()->Add(values.begin(), values.end());
    if (!diff) return;
    const std::vector<float> gradient = to_floats(context, diff);
    blob->mutable_diff()->Add(gradient.begin(), gradient.end());
  }
}

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

void write_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// The header of a length-delimited field.
std::string field_header(int number, size_t length) {
  constexpr int kLengthDelimited = 2;
  std::string header;
  write_varint(static_cast<uint64_t>(number) << 3 | kLengthDelimited, &header);
  write_varint(length, &header);
  return header;
}

void check_size(const std::string& path, uint64_t bytes) {
  require(bytes <= INT_MAX, path, ": the weights take ", bytes,
          " bytes, but a .caffemodel cannot be larger than 2 GiB: write "
          "HDF5 (snapshot_format: HDF5 in the solver)");
}

}  // namespace

void save_caffemodel(Net& net, const std::string& path, bool gradients) {
  const Graph& graph = net.graph();
  uint64_t bytes = 0;
  for (const Graph::View& view : graph.views) {
    for (int id : view.parameters)
      bytes += static_cast<uint64_t>(graph.parameters[id].data.count()) *
               size_of(graph.parameters[id].data.dtype()) * (gradients ? 2 : 1);
  }
  check_size(path, bytes);
  // Layer by layer, so that at most one layer is in memory twice.
  AtomicFile file(path);
  bytes = 0;
  const auto write_field = [&](int number, const std::string& content) {
    const std::string header = field_header(number, content.size());
    bytes += header.size() + content.size();
    check_size(path, bytes);
    file.write(header.data(), header.size());
    file.write(content.data(), content.size());
  };
  if (graph.net.has_name()) write_field(NetParameter::kNameFieldNumber, graph.net.name());
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    LayerParameter layer = completed(net, i);
    for (int id : graph.views[i].parameters) {
      const Parameter& parameter = graph.parameters[id];
      store(net.context(), parameter.data, gradients ? parameter.diff : Tensor(),
            layer.add_blobs());
    }
    std::string content;
    require(layer.SerializeToString(&content), path, ": layer \"", layer.name(),
            "\" is too large for a .caffemodel: write "
            "HDF5 (snapshot_format: HDF5 in the solver)");
    write_field(NetParameter::kLayerFieldNumber, content);
  }
  file.commit();
}

}  // namespace crema
