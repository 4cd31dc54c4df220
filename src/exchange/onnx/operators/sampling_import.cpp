// Operators that read images between pixels. The layers repeat the border where a position is less
// than a pixel beyond it; ONNX's operators fade to zero there, so the images get zeros around them.
#include <algorithm>

#include "exchange/onnx/operators/broadcast.h"
#include "exchange/onnx/operators/windows.h"
#include "proto/params/activation.pb.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

// One axis of an image: what is read of it, and how coordinates from -1 to 1 become positions.
struct SampledAxis {
  int64_t extent = 0, positions = 0;  // of the image, and of the result
  int64_t size = 0;                   // of both, as blobs of one size
  float factor = 1, shift = 0;
};

class GridSampler {
 public:
  explicit GridSampler(OperatorImport& op) : op_(op) {
    const std::string mode = op.string_of("mode", op.opset() < 20 ? "bilinear" : "linear");
    const std::string padding = op.string_of("padding_mode", "zeros");
    require((mode == "bilinear" || mode == "linear") && op.axes(0) == 4 && op.axes(1) == 4,
            "only images are sampled, and linearly");
    require(padding == "zeros" || padding == "border", "padding \"", padding, "\" has no layer");
    repeats_ = padding == "border";
    const bool corners = op.int_of("align_corners", 0) != 0;
    for (int i = 0; i < 2; ++i) {
      SampledAxis& axis = axes_[i];
      axis.extent = op.shape(0)[2 + i];
      axis.positions = op.shape(1)[1 + i];
      axis.size = std::max(axis.extent + (repeats_ ? 0 : 2), axis.positions);
      axis.factor = static_cast<float>(corners ? axis.extent - 1 : axis.extent) / 2;
      axis.shift = axis.factor - (corners ? 0.f : 0.5f);
    }
  }

  void run() {
    const int64_t around = repeats_ ? 0 : 1;
    std::string positions = op_.permute(op_.blob(1), {0, 3, 1, 2});
    positions = op_.layer("Scale", {positions},
                          [](LayerParameter* layer) {
                            layer->mutable_scale_param()->set_bias_term(true);
                            keep_parameters(layer, 2);
                          },
                          {{Shape{2}, {axes_[1].factor, axes_[0].factor}},
                           {Shape{2},
                            {axes_[1].shift + static_cast<float>(around),
                             axes_[0].shift + static_cast<float>(around)}}});
    if (repeats_) positions = within_border(positions);
    PendingPad pad{{0, 0, around, around}, {0, 0, 0, 0}, 0};
    for (int i = 0; i < 2; ++i) {
      const SampledAxis& axis = axes_[i];
      pad.behind[2 + i] = axis.size - axis.extent - around;
      positions = op_.padded_axis(positions, 2 + i, 0, axis.size - axis.positions, 0);
    }
    const bool same = *std::max_element(pad.behind.begin(), pad.behind.end()) == 0 && around == 0;
    const std::string image = same ? op_.blob(0) : op_.padded(op_.blob(0), pad);
    std::string y = op_.layer("FlowWarp", {image, as_flow(positions)});
    for (int i = 0; i < 2; ++i) y = op_.cut(y, 2 + i, 0, axes_[i].positions);
    op_.give(y);
  }

 private:
  std::string within_border(const std::string& positions) {
    std::vector<std::string> parts;
    for (const int i : {1, 0}) {
      parts.push_back(
          op_.layer("Clip", {op_.cut(positions, 1, 1 - i, 2 - i)}, [&](LayerParameter* layer) {
            ClipParameter* const p = layer->mutable_clip_param();
            p->set_min(0);
            p->set_max(static_cast<float>(axes_[i].extent - 1));
          }));
    }
    return op_.layer("Concat", parts);
  }
  // How far each position is from the pixel that it is for.
  std::string as_flow(const std::string& positions) {
    const int64_t rows = axes_[0].size, columns = axes_[1].size;
    const Shape shape{2, rows, columns};
    check_folded(shape);
    std::vector<float> own(shape.count());
    for (int64_t i = 0; i < rows * columns; ++i) {
      own[i] = -static_cast<float>(i % columns);
      own[rows * columns + i] = -static_cast<float>(i / columns);
    }
    return op_.layer("Bias", {positions},
                     [](LayerParameter* layer) {
                       layer->mutable_bias_param()->set_num_axes(3);
                       keep_parameters(layer, 1);
                     },
                     {{shape, std::move(own)}});
  }

  OperatorImport& op_;
  SampledAxis axes_[2];
  bool repeats_ = false;
};

void read_grid_sample(OperatorImport& op) { GridSampler(op).run(); }
IMPORT_OPERATOR(GridSample, read_grid_sample);

// The coordinates of each position, from -1 to 1, columns first, and 1: the weights of a product with
// the maps.
void read_affine_grid(OperatorImport& op) {
  const std::vector<int64_t> size = op.ints(1, "the size");
  const auto axes = static_cast<int>(size.size()) - 2;
  require(axes > 0 && op.axes() == 3 && op.shape()[0] == size[0] && op.shape()[1] == axes &&
              op.shape()[2] == axes + 1,
          "maps of ", op.shape().brief(), " for a grid of ", size.size(), " axes");
  const bool corners = op.int_of("align_corners", 0) != 0;
  const Shape grid(std::vector<int64_t>(size.begin() + 2, size.end()));
  for (const int64_t extent : grid.dims())
    require(extent > (corners ? 1 : 0), "an axis of the grid has ", extent, " positions");
  const Shape shape{grid.count(), axes + 1};
  check_folded(shape);
  std::vector<float> positions;
  Walk walk(grid, {});
  for (int64_t i = 0; i < grid.count(); ++i, walk.next()) {
    for (int axis = axes - 1; axis >= 0; --axis) {
      const auto at = static_cast<double>(walk.position()[axis]);
      const auto extent = static_cast<double>(grid[axis]);
      positions.push_back(
          static_cast<float>(corners ? 2 * at / (extent - 1) - 1 : (2 * at + 1) / extent - 1));
    }
    positions.push_back(1);
  }
  const std::string y = op.layer("InnerProduct", {op.blob(0)},
                                 [&](LayerParameter* layer) {
                                   InnerProductParameter* const p =
                                       layer->mutable_inner_product_param();
                                   p->set_num_output(static_cast<uint32_t>(shape[0]));
                                   p->set_bias_term(false);
                                   p->set_axis(2);
                                   keep_parameters(layer, 1);
                                 },
                                 {{shape, std::move(positions)}});
  std::vector<int64_t> extents = grid.dims();
  extents.insert(extents.begin(), size[0]);
  extents.push_back(axes);
  op.give(op.reshape(op.permute(y, {0, 2, 1}), extents));
}
IMPORT_OPERATOR(AffineGrid, read_affine_grid);

std::vector<int64_t> two_of(const OperatorImport& op, const char* name, int64_t otherwise,
                            size_t count = 2) {
  std::vector<int64_t> values = op.ints_of(name);
  if (values.empty()) values.assign(count, otherwise);
  require(values.size() == count, name, " has ", values.size(), " values");
  for (const int64_t value : values)
    require(value >= 0 && value < kMaxOnnxElements, name, " has the value ", value);
  return values;
}

void read_deform_conv(OperatorImport& op) {
  require(op.axes() == 4, "only images are convolved");
  require(!op.has(4), "its mask has no layer");
  const OnnxTensor& weights = op.constant(1, "the weights");
  require(weights.shape.axes() == 4, "weights of ", weights.shape.brief());
  const std::vector<int64_t> stride = two_of(op, "strides", 1), pads = two_of(op, "pads", 0, 4),
                             dilation = two_of(op, "dilations", 1);
  require((pads[0] > 0) == (pads[1] > 0), "padding of one axis only has no layer");
  const Shape wanted = op.shape(2);
  PendingPad around{{0, 0, 1, 1}, {0, 0, 1, 1}, 0};
  std::string offsets = op.blob(2);
  std::vector<int64_t> pad;
  for (int i = 0; i < 2; ++i) {
    pad.push_back(std::max<int64_t>(pads[i] - 1, 0));
    around.behind[2 + i] += std::max<int64_t>(pads[2 + i] - pads[i], 0);
    const int64_t window = dilation[i] * (weights.shape[2 + i] - 1) + 1;
    const int64_t room = op.shape()[2 + i] + 1 + around.behind[2 + i] + 2 * pad.back() - window;
    require(stride[i] > 0 && room >= 0, "its windows do not fit");
    const int64_t more = room / stride[i] + 1 - wanted[2 + i];
    require(more >= 0, "offsets of ", wanted.brief());
    offsets = op.padded_axis(offsets, 2 + i, 0, more, 0);
  }
  // The zeros in front of the image move it by one, unless they are part of the padding.
  offsets = op.power(offsets, 1, 1, pads[0] > 0 ? 0.f : 1.f);
  std::vector<LayerBlob> blobs = {{weights.shape, weights.as_floats()}};
  if (op.has(3)) blobs.push_back({op.shape(3), op.constant(3, "the bias").as_floats()});
  std::string y = op.layer(
      "DeformableConvolution", {op.padded(op.blob(0), around), offsets},
      [&](LayerParameter* layer) {
        ConvolutionParameter* const p = layer->mutable_convolution_param();
        p->set_num_output(static_cast<uint32_t>(weights.shape[0]));
        p->set_bias_term(op.has(3));
        for (int i = 0; i < 2; ++i) {
          p->add_kernel_size(static_cast<uint32_t>(weights.shape[2 + i]));
          p->add_stride(static_cast<uint32_t>(stride[i]));
          p->add_pad(static_cast<uint32_t>(pad[i]));
          p->add_dilation(static_cast<uint32_t>(dilation[i]));
        }
        p->set_group(static_cast<uint32_t>(op.int_of("group", 1)));
        p->set_deformable_group(static_cast<uint32_t>(op.int_of("offset_group", 1)));
      },
      std::move(blobs));
  for (int i = 0; i < 2; ++i) y = op.cut(y, 2 + i, 0, wanted[2 + i]);
  op.give(y);
}
IMPORT_OPERATOR(DeformConv, read_deform_conv);

}  // namespace
}  // namespace crema
