// ImageFloatData (a fork): images from files in a list, with numbers such as landmarks, and
// optionally weights.
//
//   data[i,c,y,x] = transform(image of line (n * batch_size + i) mod lines); with with_heatmap its
//   last channel is the grey image of the same name in heatmap_dir
//   label[i,:]    = the numbers of that line
//   weight[i]     = the last number of the line, with hard_sample; it is then not a label
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, label
// (batch_size, labels) and, with hard_sample, weight (batch_size).
//
// Parameters: image_data_param as for ImageData; image_float_data_param: label_dim, the number of
// labels, hard_sample, with_heatmap, heatmap_dir. transform_param. Transforms of images do not
// change their numbers; augment must not move pixels.
//
// Gradient: none.
#include "base/error.h"
#include "data/lists/image_files.h"
#include "data/loader/to_tensor.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class ImageFloatDataLayer : public LoaderLayer {
 public:
  Arity tops() const override { return {2, weighs() ? 3 : 2}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const ImageDataParameter& data = message().image_data_param();
    require(!data.source().empty(), "image_data_param needs a `source`: a list of image files");
    require(data.batch_size() > 0, "image_data_param needs a `batch_size` of at least 1");
    require((data.new_height() > 0) == (data.new_width() > 0),
            "image_data_param gives only one of new_height and new_width; give both");
    ImageReading reading{data.root_folder(), folder()};
    if (!data.is_color()) reading.color = Color::gray;
    reading.height = data.new_height();
    reading.width = data.new_width();
    reading.scaled = params<TransformationParameter>().scaled_decoding();
    if (p().with_heatmap()) {
      require(!p().heatmap_dir().empty(),
              "with_heatmap is true, but there is no heatmap_dir: ", "where are the grey images?");
      reading.channel_root = p().heatmap_dir();
    }
    const std::string list = find_file(data.source(), folder());
    context.log().info("Opening file " + list);
    std::vector<ListedImage> images = read_labelled_list(list);
    numbers_ = static_cast<int64_t>(images.at(0).labels.size());
    const int64_t wanted = p().has_label_dim() ? p().label_dim() + weighs() : numbers_;
    require(numbers_ == wanted && labels() > 0, list, ":", images[0].line, ": has ", numbers_,
            " numbers, but label_dim ", p().has_label_dim() ? cat("is ", p().label_dim()) : "is 1",
            weighs() ? " and hard_sample needs a weight after them" : "");
    const Transform transform(params<TransformationParameter>(), training(), folder(),
                              context.log());
    require(
        !transform.changes().moves(),
        "augment moves pixels (resized_crop, flip, rotate, shear, perspective or rand_augment), "
        "but the numbers here, which may be places, do not follow; where they are none, "
        "ImageData reads them too");
    const auto files = std::make_shared<ImageFiles>(list, std::move(images), reading, transform);
    files->use_cache(image_cache(context, data, list));
    images_ = files;
    if (data.shuffle()) context.log().info("Shuffling data");
    context.log().info(cat("A total of ", images_->size(), " images."));
    LoaderOptions options = loader_options(context, data.batch_size(), data.rand_skip());
    options.shuffle = data.shuffle();
    start(context, images_, options);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Inference inference = LoaderLayer::infer(bottoms);
    inference.tops[1] = {batch_size(), labels()};
    if (inference.tops.size() > 2) inference.tops[2] = {batch_size()};
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Batch& batch = this->batch(pass.pass);
    to_tensor(context, batch.data, pass.top[0]);
    std::vector<float> values, weights;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      const bool is_label = static_cast<int64_t>(i) % numbers_ < labels();
      (is_label ? values : weights).push_back(batch.labels[i]);
    }
    to_tensor(context, values, pass.top[1]);
    if (pass.top.size() > 2) to_tensor(context, weights, pass.top[2]);
  }

  int64_t records() const override { return images_->size(); }

 private:
  const ImageFloatDataParameter& p() const { return params<ImageFloatDataParameter>(); }
  bool weighs() const { return p().hard_sample(); }
  int64_t labels() const { return numbers_ - weighs(); }

  int64_t numbers_ = 0;  // per line
  std::shared_ptr<const ImageFiles> images_;
};

REGISTER_LAYER(ImageFloatData, ImageFloatDataLayer);

}  // namespace
}  // namespace crema
