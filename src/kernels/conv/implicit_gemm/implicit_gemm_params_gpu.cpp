// Derives the parameters of implicit_gemm_gpu.cu from those of a convolution.
#include <algorithm>

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {
namespace {

// The largest of 8, 4 and 2 that divides all of them.
int vector_of(std::initializer_list<int64_t> counts) {
  int vector = 8;
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

ImplicitGemmParams implicit_gemm_params(const ConvCase& c, ConvOperator op) {
  const Plane plane(c);
  const bool data = op == ConvOperator::dgrad;
  const int64_t in = x_channels(c) / c.groups, out = c.w[0] / c.groups;
  const int64_t taps = plane.kernel[0] * plane.kernel[1];
  ImplicitGemmParams n{};
  n.groups = static_cast<int>(c.groups);
  const int64_t* const from = data ? plane.y : plane.x;  // the image gathered from
  const int64_t* const other = data ? plane.x : plane.y;
  n.height = static_cast<int>(from[0]);
  n.width = static_cast<int>(from[1]);
  n.channels = static_cast<int>(data ? out : in);
  n.pixel = n.channels * n.groups;
  n.image = n.height * n.width * n.pixel;
  for (int i = 0; i < 2; ++i) {
    n.start[i] = static_cast<int>(data ? plane.pad[i] : -plane.pad[i]);
    n.step[i] = static_cast<int>(data ? 1 : plane.stride[i]);
    n.tap[i] = static_cast<int>(data ? -plane.dilation[i] : plane.dilation[i]);
    n.by_stride[i] = Divisor(plane.stride[i]);
  }
  n.strided = data && plane.stride[0] * plane.stride[1] > 1;
  n.by_channels = Divisor(n.channels);
  n.kernel_width = static_cast<int>(plane.kernel[1]);
  n.by_plane = Divisor(other[0] * other[1]);
  n.by_row = Divisor(other[1]);
  n.w_output = static_cast<int>(taps * in);
  const int64_t positions_y = c.y[0] * plane.y[0] * plane.y[1];
  const int64_t positions_x = c.x[0] * plane.x[0] * plane.x[1];
  const int64_t y_pixel = out * c.groups, x_pixel = in * c.groups;
  switch (op) {
    case ConvOperator::fprop:
      n.rows = static_cast<int>(positions_y), n.columns = static_cast<int>(out);
      n.depth = static_cast<int>(taps * in);
      n.a_vector = n.b_vector = vector_of({in});
      n.out_pixel = static_cast<int>(y_pixel);
      n.a_group = static_cast<int>(in), n.b_group = static_cast<int>(out * n.w_output);
      n.out_group = n.bias_group = static_cast<int>(out);
      break;
    case ConvOperator::dgrad:
      n.rows = static_cast<int>(positions_x), n.columns = static_cast<int>(in);
      n.depth = static_cast<int>(taps * out);
      n.a_vector = vector_of({out}), n.b_vector = vector_of({in});
      n.out_pixel = static_cast<int>(x_pixel);
      n.a_group = static_cast<int>(out), n.b_group = static_cast<int>(out * n.w_output);
      n.out_group = static_cast<int>(in);
      break;
    case ConvOperator::wgrad:
      n.rows = static_cast<int>(out), n.columns = n.w_output;
      n.depth = static_cast<int>(positions_y);
      n.a_vector = vector_of({out}), n.b_vector = vector_of({in});
      n.a_pixel = static_cast<int>(y_pixel), n.out_pixel = n.w_output;
      n.a_group = n.bias_group = static_cast<int>(out);
      n.b_group = static_cast<int>(in), n.out_group = static_cast<int>(out * n.w_output);
      break;
  }
  return n;
}

std::vector<FilterTap> filter_taps(const ConvCase& c, ConvOperator op) {
  const ImplicitGemmParams n = implicit_gemm_params(c, op);
  const int vector = op == ConvOperator::wgrad ? n.b_vector : n.a_vector;
  const int count = op == ConvOperator::wgrad ? n.w_output : n.depth;
  std::vector<FilterTap> taps;
  for (int k = 0; k < count; k += vector) {
    const int tap = k / n.channels, channel = k % n.channels;
    const int y = tap / n.kernel_width * n.tap[0], x = tap % n.kernel_width * n.tap[1];
    const int shift = n.strided ? channel : (y * n.width + x) * n.pixel + channel;
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
  return c.pooled.empty();
}

bool has_tensor_cores(const Context& context, std::string& reason) {
  int major = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, context.ordinal()),
             "asking for the compute capability");
  if (major < 8) reason = "compute capability below 8.0";
  return major >= 8;
}

bool ImplicitGemm::supports(const ConvCase& c, std::string& reason) {
  const int64_t maximum = int64_t{1} << 31;
  if (!is_half(c.dtype)) {
    reason = "for 16-bit numbers only";
  } else if (c.order != Order::channels_last || c.x.axes() > 4) {
    reason = "for channels-last images of one or two axes only";
  } else if (x_channels(c) / c.groups % 2 != 0 || c.w[0] / c.groups % 2 != 0) {
    reason = "an odd number of channels";
  } else if (c.relu && c.relu_slope != 0) {
    reason = "a ReLU with a slope";
  } else if (!fits_short(c)) {
    reason = "more than 2^15 elements along an axis";
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else if (c.x.count() / c.x[1] * x_channels(c) >= maximum || c.y.count() >= maximum) {
    reason = "more than 2^31 elements";
  } else {
    return true;
  }
  return false;
}

}  // namespace crema
