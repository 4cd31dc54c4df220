// pascal_multilabel_datalayers.PascalMultilabelDataLayerSync and ...Async (Caffe's notebook on
// several labels): images of Pascal VOC and the classes in each of them.
//
//   data[i]  = image, resized, randomly mirrored, minus 128
//   label[i] = 1 for each class that an object of the image has, else 0
//
// Shapes: no bottoms; tops data (batch_size, 3, H, W) and label (batch_size, 20).
//
// Parameters, in param_str: batch_size; im_shape, H and W; pascal_root, the folder of VOC2007 or
// VOC2012; split, such as 'train', the name of a list in its ImageSets/Main.
//
// The first epoch is in the list's order, each later one in a new one. Several ranks share each
// batch.
//
// Gradient: none.
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/voc_classes.h"
#include "layers/data/loader_layer.h"
#include "layers/python/native.h"
#include "layers/python/param_str.h"
#include "layers/python/usual_tops.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class PascalMultilabelDataLayer : public LoaderLayer, public UsualTops {
 public:
  Arity tops() const override { return {2, 2}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const ParamStr params(message());
    const Shape data = data_shape(params);
    const std::string root = find_file(params.needed_word("pascal_root"), folder()),
                      split = params.needed_word("split");
    params.flag("native", true);
    params.refuse_others();
    images_ = std::make_shared<VocClasses>(root, split, data[2], data[3], context.random(id()));
    context.log().info(cat("A total of ", images_->size(), " images."));
    start(context, images_, loader_options(context, data[0], 0));
  }

  std::vector<Shape> usual_tops() const override {
    const Shape data = data_shape(ParamStr(message()));
    return {data, {data[0], static_cast<int64_t>(kVocClasses.size())}};
  }

  int64_t records() const override { return images_->size(); }

 private:
  static Shape data_shape(const ParamStr& params) {
    const std::vector<double> size = params.numbers("im_shape", {});
    require(size.size() == 2, "param_str has ", size.size(),
            " numbers as im_shape; it needs two, height and width of the resized images");
    for (const double side : size) {
      require(side >= 1 && side < kMaxPixels && side == std::round(side), "param_str has ", side,
              " in im_shape; a side is a whole number of pixels");
    }
    const int64_t batch_size = params.needed_integer("batch_size");
    require(batch_size > 0, "param_str has a batch_size of ", batch_size, "; it must be 1 or more");
    return {batch_size, 3, static_cast<int64_t>(size[0]), static_cast<int64_t>(size[1])};
  }

  std::shared_ptr<const VocClasses> images_;
};

using PascalMultilabelDataLayerAsync = PascalMultilabelDataLayer;

REGISTER_PYTHON(PascalMultilabelDataLayer, "pascal_multilabel_datalayers",
                "PascalMultilabelDataLayerSync");
REGISTER_PYTHON(PascalMultilabelDataLayerAsync, "pascal_multilabel_datalayers",
                "PascalMultilabelDataLayerAsync");

}  // namespace
}  // namespace crema
