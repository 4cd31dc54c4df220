// The parameters of a convolution in the form of cuDNN's graphs. Only files of a CUDA build include
// it.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/conv/cudnn_graph.h"

namespace crema {

// The parameters of a case with at least two spatial axes, or of one of its groups.
struct ConvParams {
  using Integers = std::vector<int64_t>;
  // Uids of the tensors within a graph.
  enum Tag : int64_t { kX = 1, kW, kY, kB, kSum, kSquares, kScale, kShift, kAdded };

  Integers x, w, y, stride, pad, dilation;
  int64_t parts = 1;  // groups, if each runs as a convolution of its own
  bool channels_last;

  ConvParams(const ConvCase& c, bool apart)
      : x(c.x.dims()),
        w(c.w.dims()),
        y(c.y.dims()),
        stride(c.stride),
        pad(c.pad),
        dilation(c.dilation),
        parts(apart ? c.groups : 1),
        channels_last(c.order == Order::channels_last) {
    if (c.x_channels > 0) x[1] = w[1] = c.x_channels;
    for (int64_t* channels : {&x[1], &w[0], &y[1]}) *channels /= parts;
    if (c.x.axes() > 3) return;
    for (Integers* dims : {&x, &w, &y}) dims->insert(dims->begin() + 2, 1);
    stride.insert(stride.begin(), 1);
    pad.insert(pad.begin(), 0);
    dilation.insert(dilation.begin(), 1);
  }

  // Strides of a tensor; x and y hold the channels of all groups.
  Integers strides(const Integers& dims, Tag tag) const {
    const int64_t channels = dims[1] * (tag == kX || tag == kY || tag == kAdded ? parts : 1);
    Integers strides(dims.size(), 1);
    int64_t step = channels_last ? channels : 1;
    for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis) {
      if (channels_last && axis == 1) continue;
      strides[axis] = step;
      step *= axis == 1 ? channels : dims[axis];
    }
    return strides;
  }
  // Offset from one group's part of a channels-last tensor to the next group's, in elements.
  int64_t step(int64_t tag) const {
    if (tag == kX) return x[1];
    if (tag != kW) return y[1];
    return std::accumulate(w.begin(), w.end(), int64_t{1}, std::multiplies<>());
  }

  CudnnGraph::Attributes input(CudnnGraph& g, const Integers& dims, Tag tag) const {
    return g.input(dims, strides(dims, tag), tag);
  }
  void output(CudnnGraph& g, const CudnnGraph::Attributes& tensor, const Integers& dims,
              Tag tag) const {
    g.output(tensor, dims, strides(dims, tag), tag);
  }
  template <typename Attributes>
  Attributes attributes() const {
    return Attributes().set_padding(pad).set_stride(stride).set_dilation(dilation);
  }

  // The key that a plan is cached under.
  std::string key(const ConvCase& c, const char* what) const {
    return cat("conv ", what, " ", name_of(c.precision), " ", sizes_of(c),
               parts > 1 ? " group by group" : "");
  }
};

}  // namespace crema
