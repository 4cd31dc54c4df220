// BboxData (a fork): images from files in a list, with the boxes of their objects.
//
//   data[i,c,y,x]    = transform(image of line (n * batch_size + i) mod lines)
//   boxes[i,5k...+4] = x1, y1, x2, y2 and class of its object k, as in its file; then -1
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, and boxes
// (batch_size, 5 M), where M is the maximum number of objects per image of the list.
//
// Parameters: bbox_data_param: source, a text file with lines `image boxes`, the latter a text file
// with x1 y1 x2 y2 class for each object; root_folder, prefixed to every path; new_height and
// new_width, to which images are resized; is_color, false for grey; batch_size; shuffle, a new
// order in every epoch; rand_skip. transform_param. Transforms of images do not change their boxes;
// augment must not move pixels.
//
// Gradient: none.
#include "base/error.h"
#include "data/lists/image_files.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class BboxDataLayer : public LoaderLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const ImageDataParameter& data = message().bbox_data_param();
    require(!data.source().empty(),
            "bbox_data_param needs a `source`: a list of images and files of boxes");
    require(data.batch_size() > 0, "bbox_data_param needs a `batch_size` of at least 1");
    require((data.new_height() > 0) == (data.new_width() > 0),
            "bbox_data_param gives only one of new_height and new_width; give both");
    ImageReading reading{data.root_folder(), folder()};
    if (!data.is_color()) reading.color = Color::gray;
    reading.height = data.new_height();
    reading.width = data.new_width();
    const std::string list = find_file(data.source(), folder());
    context.log().info("Opening file " + list);
    const Transform transform(params<TransformationParameter>(), training(), folder(),
                              context.log());
    require(
        !transform.changes().moves(),
        "augment moves pixels (resized_crop, flip, rotate, shear, perspective or rand_augment), "
        "but the boxes here do not follow; those of AnnotatedData do");
    images_ = std::make_shared<ImageFiles>(
        list, read_boxed_list(list, [&](const std::string& path) { return reading.find(path); }),
        reading, transform);
    if (data.shuffle()) context.log().info("Shuffling data");
    context.log().info(cat("A total of ", images_->size(), " images."));
    LoaderOptions options = loader_options(context, data.batch_size(), data.rand_skip());
    options.shuffle = data.shuffle();
    start(context, images_, options);
  }

  int64_t records() const override { return images_->size(); }

 private:
  std::shared_ptr<const ImageFiles> images_;
};

REGISTER_LAYER(BboxData, BboxDataLayer);

}  // namespace
}  // namespace crema
