#include "python/net/layer_view.h"

#include "base/error.h"

namespace crema::python {

namespace py = pybind11;

namespace {

class NetBlob : public BlobObject {
 public:
  NetBlob(std::shared_ptr<NetObject> net, int blob) : net_(std::move(net)), blob_(blob) {}
  Shape shape() override { return net_->blob_shape(blob_); }
  py::array data() override { return net_->blob_data(blob_); }
  py::array diff() override { return net_->blob_diff(blob_); }
  void reshape(const Shape& shape) override { net_->reshape_blob(blob_, shape); }
  Tensor gpu_tensor(bool diff) override { return net_->blob_tensor(blob_, diff); }
  int gpu_ordinal() override { return net_->net().context().ordinal(); }
  std::string name() override { return net_->map().blobs[blob_].name; }

 private:
  std::shared_ptr<NetObject> net_;
  int blob_;
};

class ParameterBlob : public BlobObject {
 public:
  ParameterBlob(std::shared_ptr<NetObject> net, int parameter, Shape shape)
      : net_(std::move(net)), parameter_(parameter), shape_(std::move(shape)) {}
  Shape shape() override { return shape_; }
  py::array data() override { return net_->parameter_data(parameter_, shape_); }
  py::array diff() override { return net_->parameter_diff(parameter_, shape_); }
  Tensor gpu_tensor(bool diff) override { return net_->parameter_tensor(parameter_, diff); }
  int gpu_ordinal() override { return net_->net().context().ordinal(); }
  std::string name() override {
    const Parameter& parameter = net_->net().parameters()[parameter_];
    return cat(parameter.layer, "[", parameter.index, "]");
  }
  void reshape(const Shape& shape) override {
    require(shape == shape_, "parameter ", name(), " has the shape ", shape_.brief(),
            " that its layer gives it: it cannot become ", shape.brief());
  }

 private:
  std::shared_ptr<NetObject> net_;
  int parameter_;
  Shape shape_;
};

}  // namespace

std::shared_ptr<BlobObject> make_net_blob(const std::shared_ptr<NetObject>& net, int blob) {
  return std::make_shared<NetBlob>(net, blob);
}

std::vector<std::shared_ptr<BlobObject>> LayerView::blobs() const {
  const Graph& graph = net->net().graph();
  const std::vector<int>& parameters = graph.views[layer].parameters;
  const std::vector<ParameterSpec>* specs = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.members.back() == layer) specs = &node.layer->parameters();
  }
  std::vector<std::shared_ptr<BlobObject>> blobs;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Shape& owned = graph.parameters[parameters[k]].shape;
    const bool seen = specs && k < specs->size() && (*specs)[k].shape.count() == owned.count();
    blobs.push_back(
        std::make_shared<ParameterBlob>(net, parameters[k], seen ? (*specs)[k].shape : owned));
  }
  return blobs;
}

}  // namespace crema::python
