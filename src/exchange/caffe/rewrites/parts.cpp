#include "exchange/caffe/rewrites/parts.h"

#include "exchange/caffe/fields.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

FillCaffeLayer power_fields(double scale, double shift, double power) {
  return [=](LayerParameter* to) {
    PowerParameter& p = *to->mutable_power_param();
    if (scale != 1) p.set_scale(static_cast<float>(scale));
    if (shift != 0) p.set_shift(static_cast<float>(shift));
    if (power != 1) p.set_power(static_cast<float>(power));
  };
}

FillCaffeLayer eltwise_fields(EltwiseParameter::EltwiseOp operation, std::vector<float> coeff) {
  return [operation, coeff](LayerParameter* to) {
    to->mutable_eltwise_param()->set_operation(operation);
    for (const float factor : coeff) to->mutable_eltwise_param()->add_coeff(factor);
  };
}

// Keeps the batch, so that the net takes others.
FillCaffeLayer shape_fields(const Shape& from, const std::vector<int64_t>& extents) {
  return [from, extents](LayerParameter* to) {
    BlobShape& shape = *to->mutable_reshape_param()->mutable_shape();
    for (const int64_t extent : extents) shape.add_dim(extent);
    if (!extents.empty() && from.axes() > 0 && from[0] == extents[0]) shape.set_dim(0, 0);
  };
}

// Slices x into what is before, wanted and behind; returns which of the parts is wanted.
struct Cut {
  std::vector<int64_t> points;
  int parts = 1, wanted = 0;
};

Cut cut_at(int64_t extent, int64_t first, int64_t end) {
  Cut cut;
  if (first > 0) {
    cut.points.push_back(first);
    cut.wanted = 1;
  }
  if (end < extent) cut.points.push_back(end);
  cut.parts = static_cast<int>(cut.points.size()) + 1;
  return cut;
}

std::vector<int> slices(LayerRewrite& layer, int x, int axis, const Cut& cut) {
  return layer.add_many("Slice", {x}, cut.parts, [&](LayerParameter* to) {
    to->mutable_slice_param()->set_axis(axis);
    for (const int64_t point : cut.points)
      to->mutable_slice_param()->add_slice_point(static_cast<uint32_t>(point));
  });
}

}  // namespace

int power_of(LayerRewrite& layer, int x, double scale, double shift, double power) {
  if (scale == 1 && shift == 0 && power == 1) return x;
  return layer.add("Power", {x}, power_fields(scale, shift, power));
}

void write_power(LayerRewrite& layer, int x, double scale, double shift, double power) {
  layer.write("Power", {x}, power_fields(scale, shift, power));
}

int product_of(LayerRewrite& layer, const std::vector<int>& factors) {
  return layer.add("Eltwise", factors, eltwise_fields(EltwiseParameter::PROD, {}));
}

void write_product(LayerRewrite& layer, const std::vector<int>& factors) {
  layer.write("Eltwise", factors, eltwise_fields(EltwiseParameter::PROD, {}));
}

int sum_of(LayerRewrite& layer, const std::vector<int>& terms, const std::vector<float>& coeff) {
  return layer.add("Eltwise", terms, eltwise_fields(EltwiseParameter::SUM, coeff));
}

void write_sum(LayerRewrite& layer, const std::vector<int>& terms,
               const std::vector<float>& coeff) {
  layer.write("Eltwise", terms, eltwise_fields(EltwiseParameter::SUM, coeff));
}

int reshaped(LayerRewrite& layer, int x, const std::vector<int64_t>& extents) {
  if (layer.shape_of(x) == Shape(extents)) return x;
  return layer.add("Reshape", {x}, shape_fields(layer.shape_of(x), extents));
}

void write_reshaped(LayerRewrite& layer, int x, const Shape& shape) {
  layer.write("Reshape", {x}, shape_fields(layer.shape_of(x), shape.dims()));
}

int part_of(LayerRewrite& layer, int x, int axis, int64_t first, int64_t end) {
  const Cut cut = cut_at(layer.shape_of(x)[axis], first, end);
  if (cut.parts == 1) return x;
  return slices(layer, x, axis, cut)[cut.wanted];
}

void write_part(LayerRewrite& layer, int x, int axis, int64_t first, int64_t end) {
  const Cut cut = cut_at(layer.shape_of(x)[axis], first, end);
  if (cut.parts == 1) return layer.pass_on(x);
  layer.write_one_of("Slice", {x}, cut.parts, cut.wanted, [&](LayerParameter* to) {
    to->mutable_slice_param()->set_axis(axis);
    for (const int64_t point : cut.points)
      to->mutable_slice_param()->add_slice_point(static_cast<uint32_t>(point));
  });
}

int mixed(LayerRewrite& layer, int x, int64_t outputs, std::vector<float> weights) {
  const Shape& shape = layer.shape_of(x);
  if (shape.axes() == 2) {
    return layer.add(
        "InnerProduct", {x},
        [&](LayerParameter* to) {
          to->mutable_inner_product_param()->set_num_output(static_cast<uint32_t>(outputs));
          to->mutable_inner_product_param()->set_bias_term(false);
        },
        {{{outputs, shape[1]}, std::move(weights)}});
  }
  const std::vector<int64_t> ones(static_cast<size_t>(shape.axes() - 2), 1);
  std::vector<int64_t> extents = {outputs, shape[1]};
  extents.insert(extents.end(), ones.begin(), ones.end());
  return layer.add("Convolution", {x}, convolution(outputs, ones, ones, 1),
                   {{Shape(extents), std::move(weights)}});
}

FillCaffeLayer convolution(int64_t outputs, const std::vector<int64_t>& kernel,
                           const std::vector<int64_t>& stride, int64_t group) {
  return [=](LayerParameter* to) {
    ConvolutionParameter& p = *to->mutable_convolution_param();
    p.set_num_output(static_cast<uint32_t>(outputs));
    p.set_bias_term(false);
    if (group > 1) p.set_group(static_cast<uint32_t>(group));
    set_kernel(kernel, stride, std::vector<int64_t>(kernel.size(), 0),
               std::vector<int64_t>(kernel.size(), 1), &p);
  };
}

}  // namespace crema
