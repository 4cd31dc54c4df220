#include "exchange/onnx/picture_input.h"

#include "net/preparation.h"

namespace crema {

namespace {

// The size to which resize_param brings pictures.
void take_resize_param(TransformationParameter* parameter, const std::string& what,
                       PictureInput* input) {
  if (!parameter->has_resize_param()) return;
  const ResizeParameter& p = parameter->resize_param();
  const bool linear = p.interp_mode_size() == 0 ||
                      (p.interp_mode_size() == 1 && p.interp_mode(0) == ResizeParameter::LINEAR);
  require(p.prob() == 1 && p.resize_mode() == ResizeParameter::WARP && linear &&
              input->height == 0 && input->short_side == 0,
          what, "its resize_param is not one WARP with LINEAR; -resize WIDTHxHEIGHT replaces it");
  input->height = p.height();
  input->width = p.width();
  parameter->clear_resize_param();
}

class PictureWriter {
 public:
  PictureWriter(const PictureInput& input, const std::string& picture, int top, LayerExport& layer)
      : input_(input), layer_(layer), top_(top), x_(picture) {}

  void write() {
    x_ = layer_.cast(x_, onnx::TensorProto::FLOAT);
    x_ = layer_.node("Transpose", {x_}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
    if (input_.resizes) resize();
    const TransformParams& numbers = input_.transform.numbers();
    if (numbers.gray != GrayOf::none) {
      make_gray();
    } else if (input_.channels == 3 && !input_.transform.augmentation().reverses_colors()) {
      x_ = layer_.node("Gather", {x_, layer_.ints({2, 1, 0})}, {{"axis", int64_t{1}}});
    }
    const Cut cut = numbers.cut(input_.height, input_.width, {});
    const Shape& shape = layer_.top_shape(top_);
    if (input_.short_side == 0 && (shape[2] != input_.height || shape[3] != input_.width)) {
      x_ = layer_.slice(x_, 2, cut.top, cut.top + shape[2]);
      x_ = layer_.slice(x_, 3, cut.left, cut.left + shape[3]);
    }
    subtract_and_scale(cut);
  }

 private:
  // Rows and columns as a vector of integers. Pixels are bytes after resizing.
  void resize_to(const std::string& rows_and_columns) {
    OnnxAttributes settings = {{"mode", std::string("linear")},
                               {"coordinate_transformation_mode", std::string("half_pixel")}};
    const std::string none = layer_.opset() < 13 ? layer_.floats({0}, {}) : "";
    std::string sizes = rows_and_columns;
    if (layer_.opset() >= 18) {
      settings.push_back({"axes", std::vector<int64_t>{2, 3}});
    } else {
      sizes = layer_.node("Concat", {layer_.slice(layer_.node("Shape", {x_}), 0, 0, 2), sizes},
                          {{"axis", int64_t{0}}});
    }
    x_ = layer_.node("Round", {layer_.node("Resize", {x_, none, none, sizes}, settings)});
  }

  void resize() {
    if (input_.short_side == 0) return resize_to(layer_.ints({input_.height, input_.width}));
    // The sides times short_side, divided by the smaller one, rounded.
    const std::string sides =
        layer_.cast(layer_.slice(layer_.node("Shape", {x_}), 0, 2, 4), onnx::TensorProto::FLOAT);
    const std::string wanted = layer_.node(
        "Div", {layer_.node("Mul", {sides, layer_.scalar(static_cast<float>(input_.short_side))}),
                layer_.reduce("ReduceMin", sides, {0}, true)});
    const std::string sizes =
        layer_.cast(layer_.node("Floor", {layer_.node("Add", {wanted, layer_.scalar(0.5f)})}),
                    onnx::TensorProto::INT64);
    resize_to(sizes);
    const Shape& shape = layer_.top_shape(top_);
    const std::string cut = layer_.ints({shape[2], shape[3]});
    const std::string begin =
        layer_.node("Div", {layer_.node("Sub", {sizes, cut}), layer_.ints({2})});
    x_ = layer_.node("Slice", {x_, begin, layer_.node("Add", {begin, cut}), layer_.ints({2, 3})});
  }

  void make_gray() {
    x_ = layer_.node("Conv", {x_, layer_.floats({1, 3, 1, 1}, {0.299f, 0.587f, 0.114f})});
  }

  void subtract_and_scale(const Cut& cut) {
    const Transform& transform = input_.transform;
    const Shape& shape = layer_.top_shape(top_);
    const float scale = transform.numbers().scale;
    std::string zero_mean = x_;
    if (!transform.mean_image().empty()) {
      std::vector<float> mean;
      const Shape& whole = transform.mean_shape();
      for (int64_t c = 0; c < shape[1]; ++c)
        for (int64_t y = 0; y < shape[2]; ++y)
          for (int64_t x = 0; x < shape[3]; ++x)
            mean.push_back(
                transform.mean_image()[(c * whole[1] + cut.top + y) * whole[2] + cut.left + x]);
      zero_mean = layer_.node(
          "Sub", {x_, layer_.floats({1, shape[1], shape[2], shape[3]}, std::move(mean))});
    } else if (!transform.mean_values().empty()) {
      const std::vector<float>& means = transform.mean_values();
      zero_mean = layer_.node(
          "Sub", {x_, layer_.floats({1, static_cast<int64_t>(means.size()), 1, 1}, means)});
    }
    if (scale == 1) return layer_.write("Identity", {zero_mean}, {}, top_);
    layer_.write("Mul", {zero_mean, layer_.scalar(scale)}, {}, top_);
  }

  const PictureInput& input_;
  LayerExport& layer_;
  const int top_;
  std::string x_;
};

}  // namespace

std::vector<float> PictureInput::prepared(const std::vector<uint8_t>& pixels) const {
  Record record;
  Image& image = record.image;
  image.channels = channels;
  image.height = height;
  image.width = width;
  image.pixels = pixels;
  if (channels == 3)  // as it is decoded
    for (size_t i = 0; i < pixels.size(); i += 3) std::swap(image.pixels[i], image.pixels[i + 2]);
  show_image(record);
  Rng rng{Random()};
  transform.augment(record, rng);
  std::vector<float> values(
      static_cast<size_t>(transform.output({channels, height, width}).count()));
  transform.apply(record, {}, values.data());
  return values;
}

PictureInput picture_input(const InputPreparation& preparation, const Shape& shape, bool resizes,
                           const std::string& folder, const std::string& flag) {
  const std::string what = cat(flag, ": input ", preparation.name(), ": ");
  require(shape.axes() == 4, what, "it is ", shape.brief(),
          ", and pictures become samples x channels x height x width");
  require(preparation.has_channels(), what, "the net does not say that it takes pictures");
  PictureInput input{Transform({}, false, "", silent_log())};
  input.height = preparation.resize_height();
  input.width = preparation.resize_width();
  input.short_side = preparation.short_side();
  InputPreparation changed = preparation;
  take_resize_param(changed.mutable_transform_param(), what, &input);
  const bool any_size = input.height > 0 || input.short_side > 0;
  require(any_size || !crops(preparation.transform_param()), what,
          "it is the middle of a picture of unknown size; give -resize WIDTHxHEIGHT");
  require(resizes || input.short_side == 0, what, "the smaller side of pictures becomes ",
          input.short_side, ", so they have no one size; give -resize WIDTHxHEIGHT",
          flag == "-preprocess" ? ", or -preprocess inside" : "");
  input.resizes = resizes && any_size;
  if (input.height == 0) {
    input.height = input.short_side > 0 ? input.short_side : shape[2];
    input.width = input.short_side > 0 ? input.short_side : shape[3];
  }
  changed.set_resize_height(static_cast<uint32_t>(input.height));
  changed.set_resize_width(static_cast<uint32_t>(input.width));
  const Shape sample = {shape[1], shape[2], shape[3]};
  const TransformationParameter parameter = image_transform(changed, sample);
  input.channels = parameter.has_gray() ? 3 : sample[0];
  input.transform = Transform(parameter, false, folder, silent_log());
  const Transform& transform = input.transform;
  const bool plain =
      !transform.changes().any() && transform.numbers().pad == 0 &&
      (!transform.augmentation().any() || transform.augmentation().only_reverses_colors());
  require(plain, what, "its transform_param has more than crop, mean and scale; leave ", flag,
          " out, and prepare pictures as transform_param says");
  require(transform.mean_image().empty() || input.short_side == 0, what,
          "its mean image is that of pictures of one size; give -resize WIDTHxHEIGHT");
  const Shape made = transform.output({input.channels, input.height, input.width});
  require(made == sample, what, "pictures of ", input.width, "x", input.height, " give ",
          made.brief(), ", but the net takes ", sample.brief(), "; give -resize WIDTHxHEIGHT");
  return input;
}

void write_picture_input(const PictureInput& input, const std::string& picture, int top,
                         LayerExport& layer) {
  PictureWriter(input, picture, top, layer).write();
}

}  // namespace crema
