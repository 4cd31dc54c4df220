// LabelImageLayer: base of DenseImageData, ImageSegData, ImageLabelmapData and SegData, which read
// lists of images with images as labels.
#pragma once

#include "base/error.h"
#include "data/lists/label_images.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {

class LabelImageLayer : public LoaderLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::image_pairs};

  int64_t records() const override { return images_->size(); }

 protected:
  // Ends setup. `Parameter`: DenseImageDataParameter or ImageDataParameter.
  template <typename Parameter>
  void start_reading(Context& context, const Parameter& data, TransformationParameter transform,
                     LabelImageOptions labels) {
    require(!data.source().empty(), "there is no `source`: a list of images and label images");
    require(data.batch_size() > 0, "a `batch_size` of at least 1 is needed");
    require((data.new_height() > 0) == (data.new_width() > 0),
            "only one of new_height and new_width is given; give both");
    ImageReading reading{data.root_folder(), folder()};
    if (!data.is_color()) reading.color = Color::gray;
    reading.height = data.new_height();
    reading.width = data.new_width();
    reading.scaled = transform.scaled_decoding();
    const std::string list = find_file(data.source(), folder());
    context.log().info("Opening file " + list);
    labels.scales.assign(transform.scale_factors().begin(), transform.scale_factors().end());
    transform.clear_scale_factors();
    const auto images = std::make_shared<LabelImages>(
        list, reading, Transform(transform, training(), folder(), context.log()), labels);
    if constexpr (requires { data.cache(); }) images->use_cache(image_cache(context, data, list));
    images_ = images;
    context.log().info(cat("A total of ", images_->size(), " images."));
    LoaderOptions options = loader_options(context, data.batch_size(), data.rand_skip());
    options.shuffle = data.shuffle();
    start(context, images_, options);
  }

 private:
  std::shared_ptr<const LabelImages> images_;
};

}  // namespace crema
