// DetectNetTransformation: augments images at random and makes DetectNet's target maps of their
// boxes (NVIDIA's Caffe).
//   image  hue rotated and saturation reduced (HSV), minus the mean, mirrored, scaled (bicubic),
//          rotated, cropped to image_size_y x image_size_x; 0 outside the image
//   map    a cell of `stride` pixels is covered if it meets a box's centre region: scale_cvg of its
//          size, with GRIDBOX_MAX at most max_cvg_len, with GRIDBOX_MIN at least min_cvg_len
//          but not more than the box; of several boxes the last one wins
//   channels of the map: covered or not; left, top, right, bottom of the box relative to the cell;
//          1 / width, 1 / height; stride^2 / covered area, with obj_norm: false at least 1; and for
//          each class of object_class 1 where a box of it covers the cell
// Each change of detectnet_augmentation_param is applied with its probability (..._prob), in
// training only; in testing images are scaled to the output size. Boxes follow their image; a
// rotation moves their centres.
// Shapes: images (N, 3, H, W), BGR; boxes (N, 1, 1 + rows, 16): row 0 has their number and 16, each
// other one x, y, width, height, angle, class, ... in pixels; tops (N, 3, image_size_y,
// image_size_x) and (N, 8 + classes, image_size_y / stride, image_size_x / stride).
// Parameters: none; of transform_param only mean_file or mean_value is used.
// Gradient: none.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/transforms/mean.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/forks/detectnet/detectnet_pixels.h"
#include "layers/forks/detectnet/detectnet_targets.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

struct SampleChanges {
  AugmentationParams how;
  PassRandom random;
  int64_t first_image;  // images of the batch before these
  DetectNetChange* changes;
  CREMA_HD void operator()(int64_t image) const {
    changes[image] = how.draw(random.get(), first_image + image);
  }
};

class DetectNetTransformationLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::detection, .keeps_channels = true, .in_use = InUse::bypassed};

 private:
  const DetectNetGroundTruthParameter& p() const { return params<DetectNetGroundTruthParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    const DetectNetAugmentationParameter& a = params<DetectNetAugmentationParameter>();
    const auto is_share = [](const char* name, float value) {
      require(value >= 0 && value <= 1, name, " must be from 0 to 1, but is ", value);
    };
    is_share("crop_prob", a.crop_prob());
    is_share("scale_prob", a.scale_prob());
    is_share("flip_prob", a.flip_prob());
    is_share("rotation_prob", a.rotation_prob());
    is_share("hue_rotation_prob", a.hue_rotation_prob());
    is_share("desaturation_prob", a.desaturation_prob());
    is_share("desaturation_max", a.desaturation_max());
    require(a.scale_min() > 0 && a.scale_max() >= a.scale_min(),
            "scale_min and scale_max must be positive and in this order, but are ", a.scale_min(),
            " and ", a.scale_max());
    require(p().stride() > 0 && p().image_size_x() >= p().stride() &&
                p().image_size_y() >= p().stride(),
            "stride must be from 1 to image_size_x and image_size_y, but is ", p().stride(),
            " for an image of ", p().image_size_x(), " x ", p().image_size_y());
    require(p().scale_cvg() > 0, "scale_cvg must be positive, but is ", p().scale_cvg());
    // By default, KITTI's cars.
    std::map<uint32_t, uint32_t> channels;
    for (const auto& pair : p().object_class()) channels[pair.src()] = pair.dst();
    if (channels.empty()) channels[1] = 0;
    for (const auto& [from, to] : channels) {
      require(to < 10000, "object_class has dst: ", to,
              ", but a map has a channel for each number");
      classes_.push_back(static_cast<float>(from));
      classes_.push_back(static_cast<float>(to));
      channels_ = std::max<int64_t>(channels_, kDetectNetMap + to + 1);
    }
    read_mean_of_images();
  }

  void read_mean_of_images() {
    const TransformationParameter& t = params<TransformationParameter>();
    require(
        !t.has_augment(),
        "transform_param has augment, but here detectnet_augmentation_param says how images and "
        "their boxes change");
    require(!t.has_mean_file() || t.mean_value_size() == 0,
            "transform_param has mean_file and mean_value; give one of them");
    require(t.mean_value_size() <= 1 || t.mean_value_size() == 3,
            "mean_value must be given once or 3 times, but is given ", t.mean_value_size(),
            " times");
    if (t.has_mean_file()) {
      const std::string path = find_file(t.mean_file(), folder());
      mean_image_ = read_mean(path);
      require(mean_image_.shape.axes() == 3 && mean_image_.shape[0] == 3, path,
              ": the mean must be that of images of 3 channels, but is ",
              mean_image_.shape.brief());
      return;
    }
    for (int i = 0; i < 3; ++i) {
      const int count = t.mean_value_size();
      means_.push_back(count == 0 ? 0 : t.mean_value(count == 1 ? 0 : i));
    }
  }

  int64_t rows(const Shape& boxes) const { return boxes.count(1) / kDetectNetBox - 1; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &boxes = bottoms[1];
    require(x.axes() == 4 && x[1] == 3,
            "DetectNetTransformation takes images (N, 3, H, W), but bottom 0 is ", x.brief());
    require(boxes.axes() >= 2 && boxes[0] == x[0] && boxes[boxes.axes() - 1] == kDetectNetBox &&
                rows(boxes) >= 0,
            "DetectNetTransformation takes boxes (N, 1, 1 + rows, 16) of as many images, ", x[0],
            ", but bottom 1 is ", boxes.brief());
    const auto cells = [&](uint32_t extent) -> int64_t {
      return std::lrint(static_cast<float>(extent) / static_cast<float>(p().stride()));
    };
    return {{{x[0], 3, p().image_size_y(), p().image_size_x()},
             {x[0], channels_, cells(p().image_size_y()), cells(p().image_size_x())}},
            {}};
  }

  struct State : LayerState {
    Tensor class_pairs, mean;  // on the device
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    const auto upload = [&](const std::vector<float>& values) {
      const Tensor tensor(context, Shape{static_cast<int64_t>(values.size())});
      from_floats(context, values.data(), tensor);
      return tensor;
    };
    Prepared prepared;
    State& state = prepared.make_state<State>();
    state.class_pairs = upload(classes_);
    state.mean = upload(means_.empty() ? scaled_mean(x[2], x[3]) : means_);
    prepared.workspace = x[0] * sizeof(DetectNetChange) +
                         x[0] * rows(preparation.bottoms[1]) * sizeof(TargetBox) +
                         x.count() * size_of(preparation.dtype);
    return prepared;
  }

  // The mean image, scaled to the size of the images.
  std::vector<float> scaled_mean(int64_t height, int64_t width) const {
    const int64_t from_height = mean_image_.shape[1], from_width = mean_image_.shape[2];
    if (from_height == height && from_width == width) return mean_image_.values;
    const auto position = [](int64_t at, int64_t from, int64_t to) {
      return (static_cast<double>(at) + 0.5) * static_cast<double>(from) / static_cast<double>(to) -
             0.5;
    };
    std::vector<float> mean(3 * height * width);
    for (int64_t i = 0; i < 3 * height * width; ++i) {
      const int64_t plane = i / (height * width), row = i / width % height;
      const CubicTaps down(position(row, from_height, height), from_height);
      const CubicTaps across(position(i % width, from_width, width), from_width);
      const float* values = mean_image_.values.data() + plane * from_height * from_width;
      mean[i] = static_cast<float>(cubic(values, from_width, down, across));
    }
    return mean;
  }

  AugmentationParams draw_of(const Shape& x) const {
    const DetectNetAugmentationParameter& a = params<DetectNetAugmentationParameter>();
    AugmentationParams d;
    d.training = training();
    d.hue_prob = a.hue_rotation_prob();
    d.hue = a.hue_rotation();
    d.desaturation_prob = a.desaturation_prob();
    d.desaturation = a.desaturation_max();
    d.flip_prob = a.flip_prob();
    d.scale_prob = a.scale_prob();
    d.scale_min = a.scale_min();
    d.scale_max = a.scale_max();
    d.rotation_prob = a.rotation_prob();
    d.rotation = a.max_rotate_degree();
    d.crop_prob = a.crop_prob();
    d.shift_x = a.shift_x();
    d.shift_y = a.shift_y();
    d.height = x[2];
    d.width = x[3];
    d.out_height = p().image_size_y();
    d.out_width = p().image_size_x();
    return d;
  }

  TargetRule rule() const {
    return {static_cast<double>(p().stride()),
            p().scale_cvg(),
            static_cast<double>(p().max_cvg_len()),
            static_cast<double>(p().min_cvg_len()),
            static_cast<double>(p().image_size_x()),
            static_cast<double>(p().image_size_y()),
            p().gridbox_type() == DetectNetGroundTruthParameter::GRIDBOX_MAX,
            p().crop_bboxes(),
            p().obj_norm()};
  }

  template <typename T>
  static void check_headers(const Tensor& boxes, int64_t rows) {
    for (int64_t image = 0; image < boxes.shape()[0]; ++image) {
      const T* header = boxes.data<T>() + image * (rows + 1) * kDetectNetBox;
      require(has_boxes(header, rows), "image ", image, " of the batch: its boxes begin with ",
              header[0], " and ", header[1], ", but the number of boxes, at most ", rows,
              ", and 16 are expected");
    }
  }

  void forward(Context& context, const Forward& pass) const override {
    const State& state = state_of<State>(pass);
    const Tensor &x = pass.bottom[0], &boxes = pass.bottom[1], &y = pass.top[0], &map = pass.top[1];
    const Shape& in = x.shape();
    const int64_t images = in[0], positions = in[2] * in[3], count = rows(boxes.shape());
    auto* changes = pass.workspace.data<DetectNetChange>();
    auto* targets = reinterpret_cast<TargetBox*>(changes + images);
    parallel_for(context, images,
                 SampleChanges{draw_of(in), context.random(id(), pass.pass, pass.live_pass),
                               values_before(pass.share, images), changes});
    on(x, [&]<typename T>() {
      if (context.device() == Device::cpu) check_headers<T>(boxes, count);
      T* colours = reinterpret_cast<T*>(targets + images * count);
      parallel_rows(context, images, positions,
                    ShiftHue<T>{x.data<T>(), colours, state.mean.data<float>(), positions,
                                state.mean.count() > 3 ? 1 : 0, changes});
      parallel_rows(
          context, images * y.shape()[2], y.shape()[3],
          MovePixels<T>{colours, y.data<T>(), in[2], in[3], y.shape()[2], y.shape()[3], changes});
      parallel_for(
          context, images * count,
          MoveBoxes<T>{boxes.data<T>(), count, changes, in[3], rule(),
                       state.class_pairs.data<float>(), state.class_pairs.count() / 2, targets});
      parallel_rows(context, images * map.shape()[2], map.shape()[3],
                    FillMaps<T>{boxes.data<T>(), targets, count, map.shape()[1], map.shape()[2],
                                map.shape()[3], static_cast<double>(p().stride()), map.data<T>()});
    });
  }

  std::vector<float> classes_, means_;
  Mean mean_image_;
  int64_t channels_ = 0;
};

}  // namespace
REGISTER_LAYER(DetectNetTransformation, DetectNetTransformationLayer);
}  // namespace crema
