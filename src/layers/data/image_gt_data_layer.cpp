// ImageGtData: images with boxes, and target maps for the fields of several scales (MS-CNN).
//
//   data[i]    = (pixels - mean_value) * scale of a crop around a randomly chosen object
//   target[m][i,:,h,w] = class, centre x and y, width and height of the object that most overlaps
//   the position's field, field_h x field_w pixels around ((w + 1/2) * downsample_rate, ...), if
//   by more than fg_threshold; 0 if there is none, or it is to be ignored; then that overlap. An
//   object without such a position, but with an overlap of 0.2, gets the position of its centre in
//   the map that fits best. Outside the image, and where ignored regions of the list cover a
//   field by 0.4, the overlap is 1 and the class 0: DetectionLoss skips the position.
//
// Shapes: no bottoms; tops data (batch_size, 3, H, W), for each downsample_rate a target
// (batch_size, 6, H / downsample_rate, W / downsample_rate) and, with output_gt_boxes, boxes (G, 7,
// 1, 1) of image, left, top, right, bottom, class, whether to ignore it, as many as the batch has;
// if it has none, one ignored box.
//
// Parameters: image_gt_data_param: source, a list (data/lists/field_images.h); root_folder,
// resize_width and resize_height, crop_width and crop_height, which give H and W; min_gt_width and
// min_gt_height, below which objects are ignored; do_multiple_scale with min_scale and max_scale,
// the range to which the chosen object's size is brought in half of the samples, and min_whaspect
// and max_whaspect; fg_img_multiple, how often images with objects are chosen; batch_size, shuffle,
// scale. transform_param: mean_value, mirror.
//
// Gradient: none.
#include "base/error.h"
#include "data/lists/field_images.h"
#include "data/loader/to_tensor.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class ImageGtDataLayer : public LoaderLayer {
  const ImageGtDataParameter& p() const { return params<ImageGtDataParameter>(); }
  Arity tops() const override { return {1, -1}; }
  LayerTraits traits() const override {
    LayerTraits traits = LoaderLayer::traits();
    traits.dynamic = p().output_gt_boxes();
    return traits;
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(!p().source().empty(), "image_gt_data_param needs a `source`: a list of images");
    require(p().batch_size() > 0, "image_gt_data_param needs a `batch_size` of at least 1");
    require((p().resize_height() > 0) == (p().resize_width() > 0),
            "image_gt_data_param gives only one of resize_height and resize_width; give both");
    require(p().coord_num() == 4, "coord_num is ", p().coord_num(), ", but a box has 4 numbers");
    const int named = message().top_size(),
              made = 1 + p().downsample_rate_size() + (p().output_gt_boxes() ? 1 : 0);
    require(named == made, "there are ", named, " tops, but ", made,
            " are needed: data, one for "
            "each of ",
            p().downsample_rate_size(), " downsample_rate",
            p().output_gt_boxes() ? ", and boxes" : "");
    const TransformationParameter& transform = params<TransformationParameter>();
    require(transform.mean_file().empty(), "ImageGtData takes no mean_file; give mean_value");
    const std::string path = find_file(p().source(), folder());
    context.log().info("Opening file " + path);
    ImageReading reading{p().root_folder(), folder()};
    reading.height = p().resize_height();
    reading.width = p().resize_width();
    reading.scaled = transform.scaled_decoding();
    images_ = std::make_shared<FieldImages>(path, reading, p(), transform);
    context.log().info(cat("A total of ", images_->size(), " images."));
    LoaderOptions options = loader_options(context, p().batch_size(), 0);
    options.shuffle = p().shuffle();
    start(context, images_, options);
  }

  int64_t records() const override { return images_->size(); }

  Inference infer(const std::vector<Shape>&) const override {
    const int64_t batch = batch_size();
    std::vector<Shape> tops = {LoaderLayer::infer({}).tops[0]};
    for (const Shape& map : images_->maps()) tops.push_back({batch, map[0], map[1], map[2]});
    if (p().output_gt_boxes()) {
      const int64_t maximum = std::max<int64_t>(1, batch * images_->max_objects());
      tops.push_back({maximum, FieldImages::kNumbers, 1, 1});
    }
    return {tops, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Batch& made = batch(pass.pass);
    to_tensor(context, made.data, pass.top[0]);
    const int64_t batch = made.samples, each = static_cast<int64_t>(made.labels.size()) / batch;
    int64_t at = 0;
    for (size_t m = 0; m < images_->maps().size(); ++m) {
      const int64_t count = images_->maps()[m].count();
      std::vector<float> maps;
      for (int64_t i = 0; i < batch; ++i) {
        const auto from = made.labels.begin() + i * each + at;
        maps.insert(maps.end(), from, from + count);
      }
      to_tensor(context, maps, pass.top[m + 1]);
      at += count;
    }
    if (!p().output_gt_boxes()) return;
    std::vector<float> boxes;
    for (int64_t i = 0; i < batch; ++i) {
      const auto from = made.labels.begin() + i * each + at;
      const auto numbers = static_cast<int64_t>(*from) * FieldImages::kNumbers;
      boxes.insert(boxes.end(), from + 1, from + 1 + numbers);
    }
    if (boxes.empty()) boxes = {0, 1, 1, 2, 2, 1, 1};
    std::vector<Shape>& shapes = state_of<DynamicTops>(pass).tops;
    shapes.clear();
    for (const Tensor& top : pass.top) shapes.push_back(top.shape());
    shapes.back() = {static_cast<int64_t>(boxes.size()) / FieldImages::kNumbers,
                     FieldImages::kNumbers, 1, 1};
    from_floats(context, boxes.data(), part(pass.top.back(), shapes.back()));
  }

  std::shared_ptr<const FieldImages> images_;
};

REGISTER_LAYER(ImageGtData, ImageGtDataLayer);

}  // namespace
}  // namespace crema
