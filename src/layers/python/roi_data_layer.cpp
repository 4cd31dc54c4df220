// roi_data_layer.layer.RoIDataLayer (py-faster-rcnn, R-FCN): whole images and the boxes of their
// objects, for training end to end and the proposals alone (cfg.TRAIN.HAS_RPN).
//
//   data     = image - mean, resized: its shorter side to one of `scales`, drawn for each image, or
//              less where the longer one would have more than max_size
//   im_info  = (height, width, scale) of the resized image
//   gt_boxes = (x1, y1, x2, y2, class) of each object, in pixels of the resized image
//
// Shapes: no bottoms; tops data (1, 3, H, W), im_info (1, 3), gt_boxes (G, 5), where H, W and G
// change from image to image.
//
// Parameters, in param_str: num_classes, with the background; source, a database from
// convert_annoset (on the command line in the original); backend, 'lmdb' (the default) or
// 'leveldb'; scales (600), max_size (1000), mean or pixel_means (102.9801, 115.9465, 122.7717) of
// blue, green and red; flipped or use_flipped (True): each image comes a second time in an epoch,
// mirrored; difficult (False): includes objects marked difficult, which are crowds in COCO;
// first_pixel, the number of the first pixel in the annotations: 1 (VOC) or 0 (COCO); shuffle
// (True): a new order in every epoch; threads. In phase TEST flipped and shuffle are off unless
// given.
//
// Training skips records without objects; in phase TEST it has no row in gt_boxes. The order
// depends only on the seed. Each rank reads its own images.
//
// Gradient: none.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/lists/roi_images.h"
#include "data/loader/to_tensor.h"
#include "layers/data/loader_layer.h"
#include "layers/python/native.h"
#include "layers/python/param_str.h"
#include "layers/python/usual_tops.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr int64_t kNumbers = 5, kInfo = 3, kUsualBoxes = 8;
constexpr int kTops = 3, kTopsOfFastRcnn = 6;

class RoiDataLayer : public LoaderLayer, public UsualTops {
 public:
  Arity tops() const override { return {kTops, kTopsOfFastRcnn}; }
  LayerTraits traits() const override {
    LayerTraits traits = LoaderLayer::traits();
    traits.dynamic = true;
    return traits;
  }

  void open(Context& context) override {
    require(
        message().top_size() == kTops, "it has ", message().top_size(),
        " tops, as for Fast R-CNN, whose proposals come from a file; built in are the three tops "
        "data, im_info and gt_boxes, for nets that make their own proposals; with 'native': "
        "False in param_str the Python class runs");
    const ParamStr params(message());
    const std::string source = params.word("source", "");
    if (source.empty()) {
      fail(
          "param_str names no database: the original class gets its images from a command line. "
          "Make one with convert_annoset and name it: -set \"layer[",
          name(), "].python_param.param_str={'num_classes': ", params.integer("num_classes", 21),
          ", 'source': 'voc_lmdb'}\"");
    }
    const Backend backend = backend_named(params.word("backend", "lmdb"));
    source_ = open_source(context, "param_str", source, backend);
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    const ParamStr params(message());
    const RoiOptions roi = options_of(params);
    require(roi.classes > 1, "param_str has ", roi.classes,
            " as num_classes; with the background it is 2 or more");
    LoaderOptions options = loader_options(context, 1, 0);
    options.shuffle = params.flag("shuffle", training());
    options.workers = static_cast<int>(params.integer("threads", 0));
    for (const char* known : {"source", "backend", "native"}) params.has(known);
    params.refuse_others();
    const auto images = std::make_shared<RoiImages>(source_, roi);
    largest_ = images->largest();
    records_ = images->size();
    start(context, images, options);
  }

  std::vector<Shape> usual_tops() const override {
    const RoiOptions roi = options_of(ParamStr(message()));
    return {{1, 3, *std::max_element(roi.scales.begin(), roi.scales.end()), roi.max_size},
            {1, kInfo},
            {kUsualBoxes, kNumbers}};
  }

  int64_t records() const override { return records_; }

  // The largest image and its number of boxes; the sizes in a pass are DynamicTops.
  Inference infer(const std::vector<Shape>&) const override {
    return {{{1, largest_[0], largest_[1], largest_[2]}, {1, kInfo}, {rows_, kNumbers}}, {}};
  }

  // Room for more boxes is made for twice as many, so that the net is rarely planned again.
  bool reshapes(uint64_t pass) override {
    const int64_t boxes = batch(pass).label_shape[1] - 1;
    if (boxes <= rows_) return false;
    rows_ = 2 * boxes;
    return true;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Batch& batch = this->batch(pass.pass);
    const int64_t boxes = batch.label_shape[1] - 1;
    std::vector<Shape>& tops = state_of<DynamicTops>(pass).tops;
    tops = {{1, batch.shape[0], batch.shape[1], batch.shape[2]}, {1, kInfo}, {boxes, kNumbers}};
    const auto first_box = batch.labels.begin() + kNumbers;
    to_tensor(context, batch.data, part(pass.top[0], tops[0]));
    to_tensor(context, {batch.labels.begin(), batch.labels.begin() + kInfo}, pass.top[1]);
    to_tensor(context, {first_box, batch.labels.end()}, part(pass.top[2], tops[2]));
  }

 private:
  // Settings of the original's configuration have the names that they have there, too.
  RoiOptions options_of(const ParamStr& params) const {
    RoiOptions roi;
    roi.classes = params.needed_integer("num_classes");
    roi.scales.clear();
    for (const double scale : params.numbers("scales", {600})) {
      require(scale == std::round(scale) && std::abs(scale) < kMaxPixels, "scales has ", scale,
              "; the length of an image's shorter side is a whole number of pixels");
      roi.scales.push_back(static_cast<int64_t>(scale));
    }
    roi.max_size = params.integer("max_size", roi.max_size);
    std::vector<double> mean = params.numbers("mean", {roi.mean.begin(), roi.mean.end()});
    mean = params.numbers("pixel_means", mean);
    require(mean.size() == roi.mean.size(), "mean has ", mean.size(),
            " values; it needs three, for blue, green and red");
    std::copy(mean.begin(), mean.end(), roi.mean.begin());
    roi.flipped = params.flag("use_flipped", params.flag("flipped", training()));
    roi.passes_over_empty = training();
    roi.difficult = params.flag("difficult", false);
    roi.first_pixel = params.integer("first_pixel", roi.first_pixel);
    return roi;
  }

  std::shared_ptr<const Source> source_;
  int64_t records_ = 0, rows_ = 32;
  Shape largest_;
};

REGISTER_PYTHON(RoiDataLayer, "roi_data_layer.layer", "RoIDataLayer");

}  // namespace
}  // namespace crema
