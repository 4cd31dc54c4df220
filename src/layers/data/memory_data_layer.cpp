// MemoryData: images and labels passed by a program (layers/data/memory_data.h), one batch per
// pass.
//   y[n] = image (pass * batch_size + n) modulo the number of images
// Shapes: images (batch_size, channels, height, width), or as `dim` says (a fork), where the labels
// are optional; labels (batch_size).
// Parameters: none.
// Gradient: none (nothing comes before it).
#include "layers/data/memory_data.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class MemoryDataLayer : public Layer, public MemoryData {
  const MemoryDataParameter& p() const { return params<MemoryDataParameter>(); }
  Shape shape() const {
    if (p().dim_size() > 0) return Shape(std::vector<int64_t>(p().dim().begin(), p().dim().end()));
    return {p().batch_size(), p().channels(), p().height(), p().width()};
  }
  int64_t image_size() const { return shape().count(1); }
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {p().dim_size() > 0 ? 1 : 2, 2}; }
  bool works_on_host() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }

  Inference infer(const std::vector<Shape>&) const override {
    require(shape().count() > 0,
            "memory_data_param needs batch_size, channels, height and width above 0, or dim");
    std::vector<Shape> tops = {shape()};
    if (message().top_size() > 1 || p().dim_size() == 0) tops.push_back({shape()[0]});
    return {tops, {}};
  }

  void set(std::vector<float> images, std::vector<float> labels) override {
    if (labels.empty() && message().top_size() == 1) labels.resize(images.size() / image_size());
    require(!labels.empty() && images.size() == labels.size() * static_cast<size_t>(image_size()),
            labels.size(), " labels with ", images.size(),
            " values of images: there must be at least one label, and ", image_size(),
            " values for each");
    images_ = std::move(images);
    labels_ = std::move(labels);
  }

  void forward(Context& context, const Forward& pass) override {
    require(!labels_.empty(),
            "no data: a program must hand images and labels to a MemoryData layer before the first "
            "pass");
    const uint64_t batch = shape()[0], count = labels_.size(),
                   size = static_cast<uint64_t>(image_size());
    std::vector<float> images(batch * size), labels(batch);
    for (uint64_t n = 0; n < batch; ++n) {
      const uint64_t at = (pass.pass * batch + n) % count;
      std::copy_n(images_.begin() + at * size, size, images.begin() + n * size);
      labels[n] = labels_[at];
    }
    from_floats(context, images.data(), pass.top[0]);
    if (pass.top.size() > 1) from_floats(context, labels.data(), pass.top[1]);
  }

  std::vector<float> images_, labels_;
};

}  // namespace

MemoryData& memory_data(Layer& layer) {
  MemoryData* data = dynamic_cast<MemoryData*>(&layer);
  if (!data)
    fail("layer \"", layer.name(), "\" is of type ", layer.type(),
         ", data can be handed to MemoryData only");
  return *data;
}

REGISTER_LAYER(MemoryData, MemoryDataLayer);
}  // namespace crema
