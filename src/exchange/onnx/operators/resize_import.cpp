// Images of another size.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "exchange/onnx/operator_import.h"
#include "proto/params/dense.pb.h"
#include "proto/params/forks_flow.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

struct ResizedAxis {
  int64_t from = 1, to = 1;
  double scale = 1;
};

struct ResizeSettings {
  std::string mode, coordinates, nearest;
  std::vector<ResizedAxis> axes;  // all
};

// Resize since opset 11: x, region, scales, sizes. Before, and Upsample: x, scales.
ResizeSettings read_resize_settings(const OperatorImport& op) {
  ResizeSettings s;
  const bool old = op.type() == "Upsample" || op.opset() < 11;
  s.mode = op.string_of("mode", "nearest");
  s.coordinates = op.string_of("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  s.nearest = op.string_of("nearest_mode", old ? "floor" : "round_prefer_floor");
  require(op.int_of("antialias", 0) == 0, "no layer resizes with antialias as ONNX does");
  require(op.string_of("keep_aspect_ratio_policy", "stretch") == "stretch",
          "sizes that keep the aspect ratio are not read");
  std::vector<int64_t> named = op.ints_of("axes"), sizes;
  const Shape& x = op.shape();
  if (named.empty())
    for (int axis = 0; axis < x.axes(); ++axis) named.push_back(axis);
  std::vector<float> scales;
  if (!old && op.has(3)) sizes = op.ints(3, "the sizes");
  const int of_scales = old ? 1 : 2;
  if (sizes.empty()) scales = op.constant(of_scales, "the scales").as_floats();
  require(sizes.size() + scales.size() == named.size(), sizes.size() + scales.size(), " sizes for ",
          named.size(), " axes");
  s.axes.resize(x.axes());
  for (int axis = 0; axis < x.axes(); ++axis) s.axes[axis] = {x[axis], x[axis], 1};
  for (size_t i = 0; i < named.size(); ++i) {
    ResizedAxis& axis = s.axes[OperatorImport::axis_in(named[i], x.axes())];
    if (sizes.empty()) {
      axis.scale = scales[i];
      axis.to = truncated(std::floor(static_cast<double>(axis.from) * axis.scale));
    } else {
      axis.to = sizes[i];
      axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
    }
    require(axis.to > 0, "size ", axis.to, " is not positive");
    // Floats index the values of an axis.
    require(axis.to <= int64_t{1} << 24, "size ", axis.to, " is larger than 2^24");
  }
  return s;
}

double coordinate_of(const ResizeSettings& s, const ResizedAxis& axis, int64_t position) {
  const auto at = static_cast<double>(position), to = static_cast<double>(axis.to),
             from = static_cast<double>(axis.from);
  if (s.coordinates == "asymmetric") return at / axis.scale;
  const double whole = from * axis.scale;  // `to` before it was rounded
  if (s.coordinates == "align_corners") return axis.to == 1 ? 0 : at * (from - 1) / (whole - 1);
  if (s.coordinates == "half_pixel_symmetric") {
    return from / 2 * (1 - to / whole) + (at + 0.5) / axis.scale - 0.5;
  }
  if (s.coordinates == "pytorch_half_pixel")
    return axis.to == 1 ? 0 : (at + 0.5) / axis.scale - 0.5;
  require(s.coordinates == "half_pixel", "coordinates \"", s.coordinates, "\" have no layer");
  return (at + 0.5) / axis.scale - 0.5;
}

int64_t nearest_of(const ResizeSettings& s, const ResizedAxis& axis, int64_t position) {
  const double at = coordinate_of(s, axis, position);
  double index = 0;
  if (s.nearest == "floor")
    index = std::floor(at);
  else if (s.nearest == "ceil")
    index = std::ceil(at);
  else if (s.nearest == "round_prefer_ceil")
    index = std::floor(at + 0.5);
  else
    index = std::ceil(at - 0.5);
  return std::clamp<int64_t>(truncated(index), 0, axis.from - 1);
}

// Every pixel is one of the input's: Upsample if each is repeated as often, else Gather.
void resize_nearest(OperatorImport& op, const ResizeSettings& s) {
  std::string y = op.blob(0);
  const int axes = static_cast<int>(s.axes.size());
  std::vector<std::vector<int64_t>> sources(axes);
  bool repeats = axes == 4;
  for (int axis = 0; axis < axes; ++axis) {
    const ResizedAxis& of = s.axes[axis];
    repeats = repeats && of.to % of.from == 0 && (axis >= 2 || of.to == of.from);
    for (int64_t i = 0; i < of.to; ++i) {
      sources[axis].push_back(nearest_of(s, of, i));
      repeats = repeats && sources[axis].back() == i / std::max<int64_t>(of.to / of.from, 1);
    }
  }
  if (repeats) {
    const int64_t rows = s.axes[2].to / s.axes[2].from, columns = s.axes[3].to / s.axes[3].from;
    if (rows == 1 && columns == 1) return op.give(y);
    return op.give(op.layer("Upsample", {y}, [&](LayerParameter* layer) {
      UpsampleParameter* const p = layer->mutable_upsample_param();
      if (rows == columns) {
        p->set_scale(static_cast<int32_t>(rows));
      } else {
        p->set_scale_h(static_cast<int32_t>(rows));
        p->set_scale_w(static_cast<int32_t>(columns));
      }
    }));
  }
  for (int axis = 0; axis < axes; ++axis) {
    bool same = s.axes[axis].to == s.axes[axis].from;
    for (int64_t i = 0; same && i < s.axes[axis].to; ++i) same = sources[axis][i] == i;
    if (same) continue;
    const std::string index =
        op.parameter(Shape{s.axes[axis].to}, {sources[axis].begin(), sources[axis].end()});
    y = op.layer("Gather", {y, index}, [&](LayerParameter* layer) {
      if (axis != 0) layer->mutable_gather_param()->set_axis(axis);
    });
  }
  op.give(y);
}

// The weights of the values of an axis in a resized one, (to, from). Beyond the border its value is
// repeated, or with exclude_outside does not count.
std::vector<float> resize_weights(const OperatorImport& op, const ResizeSettings& s,
                                  const ResizedAxis& axis) {
  const bool cubic = s.mode == "cubic", excludes = op.int_of("exclude_outside", 0) != 0;
  const double a = op.float_of("cubic_coeff_a", -0.75f);
  const auto weight_at = [&](double distance) {
    const double d = std::abs(distance);
    if (!cubic) return std::max(0.0, 1 - d);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0;
  };
  check_folded(Shape{axis.to, axis.from});
  std::vector<float> matrix(axis.to * axis.from);
  const int64_t reach = cubic ? 2 : 1;
  for (int64_t i = 0; i < axis.to; ++i) {
    const double at = coordinate_of(s, axis, i);
    const int64_t first = truncated(std::floor(at)) - reach + 1;
    std::vector<double> weights(axis.from);
    double sum = 0;
    for (int64_t k = first; k < first + 2 * reach; ++k) {
      if (excludes && (k < 0 || k >= axis.from)) continue;
      const double weight = weight_at(static_cast<double>(k) - at);
      weights[std::clamp<int64_t>(k, 0, axis.from - 1)] += weight;
      sum += weight;
    }
    for (int64_t k = 0; k < axis.from; ++k)
      matrix[i * axis.from + k] = static_cast<float>(excludes ? weights[k] / sum : weights[k]);
  }
  return matrix;
}

// A product with fixed weights along each axis.
void resize_by_products(OperatorImport& op, const ResizeSettings& s) {
  std::string y = op.blob(0);
  const auto axes = static_cast<int>(s.axes.size());
  for (int axis = 0; axis < axes; ++axis) {
    const ResizedAxis& of = s.axes[axis];
    if (of.to == of.from && of.scale == 1) continue;
    require(of.to * of.from <= kMaxFoldedElements, "axes of ", of.from, " and ", of.to,
            " are too long");
    std::vector<int64_t> order(axes);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[axis], order[axes - 1]);
    y = op.layer("InnerProduct", {op.permute(y, order)},
                 [&](LayerParameter* layer) {
                   InnerProductParameter* const p = layer->mutable_inner_product_param();
                   p->set_num_output(static_cast<uint32_t>(of.to));
                   p->set_bias_term(false);
                   p->set_axis(axes - 1);
                   keep_parameters(layer, 1);
                 },
                 {{Shape{of.to, of.from}, resize_weights(op, s, of)}});
    y = op.permute(y, order);
  }
  op.give(y);
}

// Interp or Resample, if it is one of them.
bool resize_as_layer(OperatorImport& op, const ResizeSettings& s) {
  if (s.axes.size() != 4 || s.axes[0].from != s.axes[0].to || s.axes[1].from != s.axes[1].to)
    return false;
  const ResizedAxis &rows = s.axes[2], &columns = s.axes[3];
  for (const ResizedAxis& axis : {rows, columns})
    if (std::abs(axis.scale * static_cast<double>(axis.from) - static_cast<double>(axis.to)) >
        1e-4 * static_cast<double>(axis.to))
      return false;
  if (s.coordinates == "align_corners") {
    op.give(op.layer("Interp", {op.blob(0)}, [&](LayerParameter* layer) {
      layer->mutable_interp_param()->set_height(static_cast<int32_t>(rows.to));
      layer->mutable_interp_param()->set_width(static_cast<int32_t>(columns.to));
    }));
    return true;
  }
  if (s.coordinates != "half_pixel" && s.coordinates != "half_pixel_symmetric" &&
      !(s.coordinates == "pytorch_half_pixel" && rows.to > 1 && columns.to > 1))
    return false;
  op.give(op.layer("Resample", {op.blob(0)}, [&](LayerParameter* layer) {
    ResampleParameter* const p = layer->mutable_resample_param();
    p->set_antialias(false);
    p->set_height(static_cast<uint32_t>(rows.to));
    p->set_width(static_cast<uint32_t>(columns.to));
  }));
  return true;
}

void read_resize(OperatorImport& op) {
  const ResizeSettings s = read_resize_settings(op);
  const bool same = std::all_of(s.axes.begin(), s.axes.end(),
                                [](const ResizedAxis& axis) { return axis.to == axis.from; });
  if (same && s.coordinates != "tf_crop_and_resize") return op.give(op.blob(0));
  if (s.mode == "nearest") return resize_nearest(op, s);
  require(s.mode == "linear" || s.mode == "cubic", "mode \"", s.mode, "\" is unknown");
  if (s.mode == "linear" && resize_as_layer(op, s)) return;
  resize_by_products(op, s);
}
IMPORT_OPERATOR(Resize, read_resize);
IMPORT_OPERATOR(Upsample, read_resize);

}  // namespace
}  // namespace crema
