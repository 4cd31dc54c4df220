#include "layers/vision/spatial_params.h"

#include "base/error.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

using Repeated = google::protobuf::RepeatedField<uint32_t>;

// One property as the file gives it: a repeated field, or its _h and _w forms.
struct Given {
  const char *name, *form;  // "kernel_size" and "kernel" for kernel_h and kernel_w
  const Repeated& all;
  bool has_h = false, has_w = false;
  int64_t h = 0, w = 0;
};

std::vector<int64_t> one_each(const Given& given, int axes, int64_t otherwise) {
  if (given.has_h || given.has_w) {
    require(axes == 2, given.form, "_h and ", given.form,
            "_w are for two spatial axes, but there are ", axes, ": give ", given.name,
            " once for each axis");
    require(given.all.empty(), "both ", given.name, " and ", given.form, "_h or ", given.form,
            "_w are given: choose one form");
    return {given.has_h ? given.h : otherwise, given.has_w ? given.w : otherwise};
  }
  require(given.all.size() <= 1 || given.all.size() == axes, given.name, " is given ",
          given.all.size(), " times, but there are ", axes,
          " spatial axes: give it once for all, or once for each");
  std::vector<int64_t> values(axes, given.all.empty() ? otherwise : given.all.Get(0));
  for (int i = 1; i < given.all.size(); ++i) values[i] = given.all.Get(i);
  return values;
}

// Fields of video forks: the first of three axes, and shapes of any number of axes.
void read_fork_fields(const ConvolutionParameter& p, SpatialParams& s) {
  const auto take = [&](const char* name, const BlobShape& shape, std::vector<int64_t>& values) {
    if (shape.dim_size() == 0) return;
    require(shape.dim_size() == static_cast<int>(values.size()), name, " has ", shape.dim_size(),
            " dim, but there are ", values.size(), " spatial axes: give one dim for each");
    values.assign(shape.dim().begin(), shape.dim().end());
  };
  take("kernel_shape", p.kernel_shape(), s.kernel);
  take("pad_shape", p.pad_shape(), s.pad);
  take("stride_shape", p.stride_shape(), s.stride);
  if (!p.has_kernel_depth() && !p.has_temporal_pad() && !p.has_temporal_stride()) return;
  require(
      s.kernel.size() == 3,
      "kernel_depth, temporal_pad and temporal_stride are for three spatial axes (time, height, "
      "width), but there are ",
      s.kernel.size());
  if (p.has_kernel_depth()) s.kernel[0] = p.kernel_depth();
  s.pad[0] = p.temporal_pad();
  s.stride[0] = p.temporal_stride();
}

// The maximum is far beyond any image, and the product of two such values fits 64 bits.
void check(const char* name, const std::vector<int64_t>& values, int64_t minimum) {
  constexpr int64_t kMax = 65535;
  for (size_t axis = 0; axis < values.size(); ++axis) {
    require(values[axis] >= minimum && values[axis] <= kMax, name, " is ", values[axis],
            " on spatial axis ", axis, ", but must be from ", minimum, " to ", kMax);
  }
}

}  // namespace

SpatialParams spatial_params(const ConvolutionParameter& p, const Shape& bottom) {
  SpatialParams s;
  s.axis = bottom.canonical_axis(p.axis());
  const int axes = bottom.axes() - s.axis - 1;
  require(axes >= 1, "the bottom has shape ", bottom.brief(), ": after the channels (axis ", s.axis,
          ") there must be at least one spatial axis");
  require(p.kernel_size_size() > 0 || p.kernel_shape().dim_size() > 0 ||
              (p.has_kernel_h() && p.has_kernel_w()),
          "kernel_size is missing (or kernel_h together with kernel_w)");
  s.kernel = one_each({"kernel_size", "kernel", p.kernel_size(), p.has_kernel_h(), p.has_kernel_w(),
                       p.kernel_h(), p.kernel_w()},
                      axes, 1);
  s.stride = one_each({"stride", "stride", p.stride(), p.has_stride_h(), p.has_stride_w(),
                       p.stride_h(), p.stride_w()},
                      axes, 1);
  s.pad = one_each({"pad", "pad", p.pad(), p.has_pad_h(), p.has_pad_w(), p.pad_h(), p.pad_w()},
                   axes, 0);
  s.dilation = one_each({"dilation", "dilation", p.dilation()}, axes, 1);
  read_fork_fields(p, s);
  check("kernel_size", s.kernel, 1);
  check("stride", s.stride, 1);
  check("dilation", s.dilation, 1);
  check("pad", s.pad, 0);
  return s;
}

}  // namespace crema
