// MemoryData: images and labels passed by a program (layers/data/memory_data.h), one batch per
// pass.
//   y[n] = transform(image (pass * batch_size + n) modulo the number of images)
// Shapes: images (batch_size, channels, height, width), or from `dim` (a fork), which makes the
// labels optional; labels (batch_size). With transform_param { crop_size } the images have its
// size.
// Parameters: memory_data_param: shuffle, a new order in every epoch. transform_param: crop,
// mirror, mean, scale; augment, for images whose values are whole numbers from 0 to 255. With
// several ranks each trains on the images that its program passed.
// Gradient: none (nothing comes before it).
#include "base/error.h"
#include "data/databases/memory_rows.h"
#include "layers/data/loader_layer.h"
#include "layers/data/memory_data.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class MemoryDataLayer : public LoaderLayer, public MemoryData {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source, .content = SourceContent::given};

 private:
  const MemoryDataParameter& p() const { return params<MemoryDataParameter>(); }
  Shape shape() const {
    if (p().dim_size() > 0) return Shape(std::vector<int64_t>(p().dim().begin(), p().dim().end()));
    return {p().batch_size(), p().channels(), p().height(), p().width()};
  }
  Shape image() const {
    const Shape all = shape();
    return Shape(std::vector<int64_t>(all.dims().begin() + 1, all.dims().end()));
  }
  Arity tops() const override { return {p().dim_size() > 0 ? 1 : 2, 2}; }
  LayerTraits traits() const override {
    LayerTraits traits = LoaderLayer::traits();
    traits.reads = {false, false};
    return traits;
  }
  // The data are known only after the program has passed them.
  bool has_epochs() const override { return false; }
  int64_t records_in(uint64_t) override { return 0; }
  bool reshapes(uint64_t pass) override { return set_ && LoaderLayer::reshapes(pass); }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(shape().count() > 0,
            "memory_data_param needs batch_size, channels, height and width above 0, or dim");
    if (has_params<TransformationParameter>())
      transform_ = std::make_shared<Transform>(params<TransformationParameter>(), training(),
                                               folder(), context.log());
    image_ = MemoryRows(image(), transform_, {}, {}).shape();
    options_ = loader_options(context, shape()[0], 0);
    options_.shuffle = p().shuffle();
    options_.batch_size = shape()[0];  // each rank has its own data
    options_.batch_of_ranks = options_.first_in_batch = 0;
    options_.prefetch = 1;  // a program may have new images for each pass
    device_ = context.device();
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    if (set_) return LoaderLayer::infer(bottoms);
    std::vector<int64_t> images = image_.dims();
    images.insert(images.begin(), shape()[0]);
    std::vector<Shape> tops = {Shape(images)};
    if (message().top_size() > 1 || p().dim_size() == 0) tops.push_back({shape()[0]});
    return {tops, {}};
  }

  void set(std::vector<float> images, std::vector<float> labels) override {
    const int64_t size = image().count();
    if (labels.empty() && message().top_size() == 1) labels.resize(images.size() / size);
    require(!labels.empty() && images.size() == labels.size() * static_cast<size_t>(size),
            labels.size(), " labels with ", images.size(),
            " values of images: there must be at least one label, and ", size, " values for each");
    fill_from(
        std::make_shared<MemoryRows>(image(), transform_, std::move(images), std::move(labels)),
        options_, device_);
    set_ = true;
  }

  void forward(Context& context, const Forward& pass) const override {
    require(set_,
            "no data: a program must hand images and labels to a MemoryData layer before the first "
            "pass");
    const Shape& images = batch(pass.pass).shape;
    if (images.count() * shape()[0] != pass.top[0].count()) {
      fail("an image of this pass is ", images.brief(), ", but the net was made for ",
           pass.top[0].shape().brief(), ": give transform_param a crop_size");
    }
    LoaderLayer::forward(context, pass);
  }

  std::shared_ptr<const Transform> transform_;
  LoaderOptions options_;
  Device device_ = Device::cpu;
  Shape image_;  // transformed
  bool set_ = false;
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
