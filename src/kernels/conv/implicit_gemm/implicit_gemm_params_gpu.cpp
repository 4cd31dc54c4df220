// Derives the parameters of implicit_gemm_gpu.cu and tf32_gemm_gpu.cu from those of a convolution.
#include <algorithm>

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"
#include "kernels/conv/implicit_gemm/tf32_gemm.h"

namespace crema {
namespace {

// The most elements, in 16 bytes, that divide all of them.
int vector_of(DType dtype, std::initializer_list<int64_t> counts) {
  int vector = 16 / static_cast<int>(size_of(dtype));
  for (int64_t count : counts) {
    while (count % vector != 0) vector /= 2;
  }
  return vector;
}

// The spatial parameters of a case of one or two axes, as two.
struct Plane {
  int64_t x[2], y[2], kernel[2], stride[2], pad[2], dilation[2];
  explicit Plane(const ConvCase& c) {
    const int axes = c.x.axes() - 2;
    for (int i = 0; i < 2; ++i) {
      const int axis = i - 2 + axes;  // negative: an axis of extent 1
      const bool there = axis >= 0;
      x[i] = there ? c.x[axis + 2] : 1;
      y[i] = there ? c.y[axis + 2] : 1;
      kernel[i] = there ? c.w[axis + 2] : 1;
      stride[i] = there ? c.stride[axis] : 1;
      pad[i] = there ? c.pad[axis] : 0;
      dilation[i] = there ? c.dilation[axis] : 1;
    }
  }
};

// Coordinates of a tap, and of the positions it is added to, are stored in 16 bits.
bool fits_short(const ConvCase& c) {
  const Plane plane(c);
  for (int i = 0; i < 2; ++i) {
    const int64_t window = plane.kernel[i] * plane.dilation[i];
    if (std::max({plane.x[i], plane.y[i], window}) + plane.pad[i] >= -kOutside) return false;
  }
  return true;
}

int64_t x_channels(const ConvCase& c) { return c.x_channels > 0 ? c.x_channels : c.x[1]; }

}  // namespace

ImplicitGemmGeometry implicit_gemm_geometry(const ConvCase& c, ConvCall call, bool bias_column) {
  const Plane plane(c);
  const bool dgrad = call == ConvCall::dgrad;
  const int64_t in = x_channels(c) / c.groups, out = c.w[0] / c.groups;
  const int64_t taps = plane.kernel[0] * plane.kernel[1];
  ImplicitGemmGeometry g{};
  g.groups = static_cast<int>(c.groups);
  const int64_t* const from = dgrad ? plane.y : plane.x;  // the image gathered from
  const int64_t* const other = dgrad ? plane.x : plane.y;
  g.height = static_cast<int>(from[0]);
  g.width = static_cast<int>(from[1]);
  g.channels = static_cast<int>(dgrad ? out : in);
  g.pixel = g.channels * g.groups;
  g.image = g.height * g.width * g.pixel;
  for (int i = 0; i < 2; ++i) {
    g.start[i] = static_cast<int>(dgrad ? plane.pad[i] : -plane.pad[i]);
    g.step[i] = static_cast<int>(dgrad ? 1 : plane.stride[i]);
    g.tap[i] = static_cast<int>(dgrad ? -plane.dilation[i] : plane.dilation[i]);
    g.by_stride[i] = Divisor(plane.stride[i]);
  }
  g.strided = dgrad && plane.stride[0] * plane.stride[1] > 1;
  g.by_channels = Divisor(g.channels);
  g.kernel_width = static_cast<int>(plane.kernel[1]);
  g.by_plane = Divisor(other[0] * other[1]);
  g.by_row = Divisor(other[1]);
  g.w_output = static_cast<int>(taps * in);
  const int64_t positions_y = c.y[0] * plane.y[0] * plane.y[1];
  const int64_t positions_x = c.x[0] * plane.x[0] * plane.x[1];
  const int64_t y_pixel = out * c.groups, x_pixel = in * c.groups;
  switch (call) {
    case ConvCall::fprop:
      g.rows = static_cast<int>(positions_y), g.columns = static_cast<int>(out);
      g.depth = static_cast<int>(taps * in);
      g.a_vector = g.b_vector = vector_of(c.dtype, {in});
      g.out_pixel = static_cast<int>(y_pixel);
      g.a_group = static_cast<int>(in), g.b_group = static_cast<int>(out * g.w_output);
      g.out_group = g.bias_group = static_cast<int>(out);
      break;
    case ConvCall::dgrad:
      g.rows = static_cast<int>(positions_x), g.columns = static_cast<int>(in);
      g.depth = static_cast<int>(taps * out);
      g.a_vector = vector_of(c.dtype, {out}), g.b_vector = vector_of(c.dtype, {in});
      g.out_pixel = static_cast<int>(x_pixel);
      g.a_group = static_cast<int>(out), g.b_group = static_cast<int>(out * g.w_output);
      g.out_group = static_cast<int>(in);
      break;
    case ConvCall::wgrad:
      g.rows = static_cast<int>(out), g.columns = g.w_output + bias_column;
      g.depth = static_cast<int>(positions_y);
      g.a_vector = vector_of(c.dtype, {out}), g.b_vector = vector_of(c.dtype, {in});
      g.a_pixel = static_cast<int>(y_pixel), g.out_pixel = g.w_output;
      g.a_group = g.bias_group = static_cast<int>(out);
      g.b_group = static_cast<int>(in), g.out_group = static_cast<int>(out * g.w_output);
      break;
    case ConvCall::both_gradients:
      break;  // these kernels compute one
  }
  return g;
}

std::vector<FilterTap> filter_taps(const ConvCase& c, ConvCall call) {
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c, call);
  const int vector = call == ConvCall::wgrad ? g.b_vector : g.a_vector;
  const int count = call == ConvCall::wgrad ? g.w_output : g.depth;
  std::vector<FilterTap> taps;
  for (int k = 0; k < count; k += vector) {
    const int tap = k / g.channels, channel = k % g.channels;
    const int y = tap / g.kernel_width * g.tap[0], x = tap % g.kernel_width * g.tap[1];
    const int shift = g.strided ? channel : (y * g.width + x) * g.pixel + channel;
    taps.push_back({shift, static_cast<short>(y), static_cast<short>(x)});
  }
  // A block reads whole tiles, at most 128 wide.
  for (int i = 0; i < 128; ++i) taps.push_back({0, kOutside, 0});
  return taps;
}

bool is_matrix_product(const ConvCase& c) {
  const Plane plane(c);
  for (int i = 0; i < 2; ++i) {
    if (plane.kernel[i] != 1 || plane.stride[i] != 1 || plane.pad[i] != 0) return false;
  }
  return true;
}

bool Tf32Gemm::supports(const ConvCase& c, std::string& reason) {
  if (c.dtype != DType::f32 || c.precision != Precision::tf32) {
    reason = "for tf32 only";
  } else if (is_matrix_product(c)) {
    reason = "windows of one pixel";
  } else if (c.dropout || c.w[0] / c.groups < 4) {
    reason = c.dropout ? "a dropout" : "groups of fewer than four outputs";
  } else {
    return fits_products(c, reason);
  }
  return false;
}

bool has_async_mma(const Context& context, std::string& reason) {
  const bool has = context.gpu().card.has_async_mma();
  if (!has) reason = "compute capability below 8.0";
  return has;
}

bool supports_products(const ConvCase& c, std::string& reason) {
  if (!is_half(c.dtype)) {
    reason = "for 16-bit numbers only";
  } else if (x_channels(c) / c.groups % 2 != 0 || c.w[0] / c.groups % 2 != 0) {
    reason = "an odd number of channels";
  } else {
    return fits_products(c, reason);
  }
  return false;
}

bool fits_products(const ConvCase& c, std::string& reason) {
  const int64_t maximum = int64_t{1} << 31;
  if (c.order != Order::channels_last || c.x.axes() > 4) {
    reason = "for channels-last images of one or two axes only";
  } else if (c.relu.on && c.relu.slope != 0) {
    reason = "a ReLU with a slope";
  } else if (!fits_short(c)) {
    reason = "more than 2^15 elements along an axis";
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else if (c.x.count() / c.x[1] * x_channels(c) >= maximum || c.y.count() >= maximum ||
             c.w.count() / c.w[1] * (x_channels(c) / c.groups) >= maximum) {
    reason = "more than 2^31 elements";
  } else {
    return true;
  }
  return false;
}

}  // namespace crema
