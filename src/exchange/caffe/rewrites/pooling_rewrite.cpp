// Poolings. Caffe rounds sizes up; what rounds down is cut from that.
#include <algorithm>

#include "exchange/caffe/fields.h"
#include "exchange/caffe/rewrites/parts.h"
#include "layers/vision/pooling_window.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/modern_shape.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/pooling.pb.h"

namespace crema {
namespace {

// A window on two axes, and how many of them there are.
struct Windows2 {
  PoolNd window;
  std::vector<int64_t> counts;

  bool is_whole(const Shape& x) const {
    for (size_t i = 0; i < 2; ++i)
      if (window.kernel[i] != x[static_cast<int>(i) + 2] || window.pad[i] != 0 || counts[i] != 1)
        return false;
    return true;
  }
  // How many windows Caffe makes of this axis.
  int64_t rounded_up(const Shape& x, size_t i) const {
    const int64_t extent = x[static_cast<int>(i) + 2], pad = window.pad[i];
    const int64_t stride = window.stride[i];
    int64_t count = (extent + 2 * pad - window.kernel[i] + stride - 1) / stride + 1;
    if (pad > 0 && (count - 1) * stride >= extent + pad) --count;
    return count;
  }
};

FillCaffeLayer pooling_fields(PoolingParameter::PoolMethod pool, const Windows2& w, bool whole) {
  return [=](LayerParameter* to) {
    PoolingParameter& p = *to->mutable_pooling_param();
    p.set_pool(pool);
    if (whole) return p.set_global_pooling(true);
    const auto u = [](int64_t value) { return static_cast<uint32_t>(value); };
    if (w.window.kernel[0] == w.window.kernel[1]) {
      p.set_kernel_size(u(w.window.kernel[0]));
    } else {
      p.set_kernel_h(u(w.window.kernel[0]));
      p.set_kernel_w(u(w.window.kernel[1]));
    }
    if (w.window.stride[0] == w.window.stride[1]) {
      p.set_stride(u(w.window.stride[0]));
    } else {
      p.set_stride_h(u(w.window.stride[0]));
      p.set_stride_w(u(w.window.stride[1]));
    }
    if (w.window.pad[0] != w.window.pad[1]) {
      p.set_pad_h(u(w.window.pad[0]));
      p.set_pad_w(u(w.window.pad[1]));
    } else if (w.window.pad[0] > 0) {
      p.set_pad(u(w.window.pad[0]));
    }
  };
}

// The share of each window that is inside the image; where zeros of the padding do not count,
// results are divided by it.
std::vector<float> shares_inside(const Windows2& w, const Shape& x, const Shape& y) {
  std::vector<float> inverse;
  const auto span = [&](size_t i, int64_t index, int64_t border) {
    const int64_t extent = x[static_cast<int>(i) + 2], pad = w.window.pad[i];
    const int64_t first = index * w.window.stride[i] - pad;
    const int64_t end = std::min(first + w.window.kernel[i], extent + pad);
    return std::min(end, extent + border * pad) - std::max(first, -border * pad);
  };
  for (int64_t i = 0; i < y[2]; ++i) {
    for (int64_t j = 0; j < y[3]; ++j) {
      inverse.push_back(static_cast<float>(span(0, i, 1) * span(1, j, 1)) /
                        static_cast<float>(span(0, i, 0) * span(1, j, 0)));
    }
  }
  return inverse;
}

// A mean whose padding the reader would not count, as a convolution of each channel.
void write_mean_as_convolution(LayerRewrite& layer, const Windows2& w, const Shape& x) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = x[static_cast<int>(i) + 2];
    if ((w.counts[i] - 1) * w.window.stride[i] + w.window.kernel[i] >
            extent + 2 * w.window.pad[i] ||
        w.counts[i] != (extent + 2 * w.window.pad[i] - w.window.kernel[i]) / w.window.stride[i] + 1)
      layer.refuse("a window reaches beyond the padding", "write round_mode: FLOOR");
  }
  const int64_t taps = w.window.kernel[0] * w.window.kernel[1];
  layer.write("Convolution", {layer.bottom()},
              [&](LayerParameter* to) {
                ConvolutionParameter& p = *to->mutable_convolution_param();
                p.set_num_output(static_cast<uint32_t>(x[1]));
                p.set_bias_term(false);
                p.set_group(static_cast<uint32_t>(x[1]));
                set_kernel(w.window.kernel, w.window.stride, w.window.pad, {1, 1}, &p);
              },
              {{{x[1], 1, w.window.kernel[0], w.window.kernel[1]},
                std::vector<float>(x[1] * taps, 1 / static_cast<float>(taps))}});
}

void rewrite_pooling(LayerRewrite& layer) {
  const PoolingParameter& p = layer.message().pooling_param();
  const Shape x = layer.bottom_shape(), y = layer.top_shape();
  if (x.axes() != 4)
    layer.refuse(cat("the bottom has shape ", x.brief(), ", which is no batch of images"),
                 "reshape it to four axes");
  Windows2 w{pool_axes(*layer.itself(), x), {y[2], y[3]}};
  if (w.window.dilation[0] != 1 || w.window.dilation[1] != 1)
    layer.refuse("its windows have a dilation", "pool without");
  if (layer.tops() > 1)
    layer.refuse("its mask counts positions in another way", "export it without the mask");
  const bool counts = p.avg_include_pad() || p.pool() != PoolingParameter::AVE ||
                      (w.window.pad[0] == 0 && w.window.pad[1] == 0);
  const bool whole =
      w.is_whole(x) && layer.dialect().has_field("Pooling", "pooling_param", "global_pooling");
  const bool has_ceil_mode = layer.dialect().has_field("Pooling", "pooling_param", "ceil_mode");
  const bool rounds_down = !whole && (w.rounded_up(x, 0) != y[2] || w.rounded_up(x, 1) != y[3]);
  const FillCaffeLayer fields = [&](LayerParameter* to) {
    pooling_fields(p.pool(), w, whole)(to);
    if (rounds_down && has_ceil_mode) to->mutable_pooling_param()->set_ceil_mode(false);
  };
  const bool plain = counts && (!rounds_down || has_ceil_mode);
  if (plain) {
    // Nothing to translate: the reader does not count the padding.
    const bool padded = w.window.pad[0] > 0 || w.window.pad[1] > 0;
    LayerParameter again;
    again.set_type("Pooling");
    again.add_bottom("x");
    again.add_top("y");
    fields(&again);
    if (padded && p.pool() == PoolingParameter::AVE &&
        !layer.dialect().misfits(again, {x}, {y}).empty())
      return write_mean_as_convolution(layer, w, x);
    return layer.write_changed("Pooling",
                               [&](LayerParameter* to) {
                                 to->clear_pooling_param();
                                 fields(to);
                               },
                               {});
  }
  if (counts && w.window.pad[0] == 0 && w.window.pad[1] == 0) {
    // Without the rows and columns that no window reads, both roundings agree.
    const auto read = [&](size_t i) {
      return (w.counts[i] - 1) * w.window.stride[i] + w.window.kernel[i];
    };
    const int rows = part_of(layer, layer.bottom(), 2, 0, read(0));
    return layer.write("Pooling", {part_of(layer, rows, 3, 0, read(1))}, fields);
  }
  int pooled = layer.add("Pooling", {layer.bottom()}, fields);
  if (counts) {
    if (layer.shape_of(pooled)[3] == y[3]) return write_part(layer, pooled, 2, 0, y[2]);
    return write_part(layer, part_of(layer, pooled, 2, 0, y[2]), 3, 0, y[3]);
  }
  pooled = part_of(layer, part_of(layer, pooled, 2, 0, y[2]), 3, 0, y[3]);
  layer.write("Scale", {pooled},
              [](LayerParameter* to) {
                to->mutable_scale_param()->set_axis(2);
                to->mutable_scale_param()->set_num_axes(2);
              },
              {{{y[2], y[3]}, shares_inside(w, x, y)}});
}
REWRITE_LAYER(Pooling, rewrite_pooling);
REWRITE_LAYER(Pooling3D, rewrite_pooling);
REWRITE_LAYER(NdPooling, rewrite_pooling);
REWRITE_LAYER(PoolingND, rewrite_pooling);

}  // namespace
}  // namespace crema
