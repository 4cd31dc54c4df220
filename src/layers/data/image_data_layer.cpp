// ImageData: images from files in a list, repeating endlessly.
//
//   data[i,c,y,x] = transform(image of line (n * batch_size + i) mod lines)
//   label[i]      = label of that line
//   where n counts the batches, and transform is crop, mirror and (x - mean) * scale
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, and label
// (batch_size), or (batch_size, labels) if the lines have several. If augment mixes samples (mixup,
// cutmix; in training) label is (batch_size, classes): soft labels, as SoftmaxWithLoss reads them.
//
// Parameters: image_data_param: source, a text file with lines `path label` or `path label label
// ...`, or CSV, labels being any numbers; root_folder, prefixed to every path; new_height and
// new_width, to which images are resized, or short_side, the length of the smaller side; is_color
// (or images_in_color), false for grey; batch_size; shuffle, a new order in every epoch; rand_skip;
// threads, by default automatic; balance (or balance_class), which makes all classes equally
// frequent in training, as for Data; cache, cache_limit and cache_folder, which keep decoded and
// resized images as Data does. transform_param, which changes no label; scaled_decoding: JPEGs that
// new_height and new_width, short_side or resized_crop make smaller are decoded at a half, a
// quarter or an eighth of their size first.
//
// A path ends with the last word of its line that is not a number. Images must have one size,
// unless they are resized or cropped, or batch_size is 1: then the net follows each one's size. In
// training several ranks share each batch: the first one has its first samples.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/lists/image_files.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class ImageDataLayer : public LoaderLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const ImageDataParameter& data = message().image_data_param();
    require(!data.source().empty(), "image_data_param needs a `source`: a list of image files");
    require(data.batch_size() > 0, "image_data_param needs a `batch_size` of at least 1");
    require(
        (data.new_height() > 0) == (data.new_width() > 0),
        "image_data_param gives only one of new_height and new_width; give both, or short_side");
    ImageReading reading{data.root_folder(), folder()};
    if (!data.is_color() || !data.images_in_color()) reading.color = Color::gray;
    reading.height = data.new_height();
    reading.width = data.new_width();
    reading.short_side = data.short_side();
    reading.scaled = params<TransformationParameter>().scaled_decoding();
    const std::string list = find_file(data.source(), folder());
    context.log().info("Opening file " + list);
    const auto images = std::make_shared<ImageFiles>(
        list, reading,
        Transform(params<TransformationParameter>(), training(), folder(), context.log()));
    images->use_cache(image_cache(context, data, list));
    images_ = images;
    if (data.shuffle()) context.log().info("Shuffling data");
    context.log().info(cat("A total of ", images_->size(), " images."));
    LoaderOptions options = loader_options(context, data.batch_size(), data.rand_skip());
    options.shuffle = data.shuffle();
    if (data.has_threads()) options.workers = static_cast<int>(data.threads());
    start(context, images_, options);
  }

  int64_t records() const override { return images_->size(); }
  bool has_classes() const override { return true; }

 private:
  std::shared_ptr<const ImageFiles> images_;
};

REGISTER_LAYER(ImageData, ImageDataLayer);

}  // namespace
}  // namespace crema
