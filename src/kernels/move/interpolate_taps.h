// Which positions a linear interpolation reads, with which weights, and which outputs read a
// position.
#pragma once

#include "base/host_device.h"
#include "kernels/move/interpolate.h"

namespace crema {

// One axis: `in` source positions from `start` on, `out` output positions.
template <typename Real>
struct InterpolationLine {
  int start, in, out;
  Real step;  // source positions per output position

  InterpolationLine(int64_t extent, const InterpolationCut& cut, int64_t outputs)
      : start(static_cast<int>(cut.before)),
        in(static_cast<int>(extent - cut.before - cut.behind)),
        out(static_cast<int>(outputs)),
        step(outputs > 1 ? static_cast<Real>(static_cast<double>(in - 1) / (out - 1)) : 0) {}
};

// One output is (1 - part) of source position `first` plus `part` of `second`.
template <typename Real>
struct InterpolationTap {
  int first, second;
  Real part;
  CREMA_HD InterpolationTap(const InterpolationLine<Real>& line, int output) {
    const Real at = line.step * static_cast<Real>(output);
    const int whole = static_cast<int>(at);
    first = whole < line.in - 1 ? whole : line.in - 1;
    second = first < line.in - 1 ? first + 1 : first;
    part = at - static_cast<Real>(first);
  }
  CREMA_HD Real weight(int position) const {
    return (position == first ? 1 - part : Real(0)) + (position == second ? part : Real(0));
  }
};

// The outputs to which a source position may contribute: [begin, end).
template <typename Real>
struct InterpolationOutputs {
  int begin, end;
  CREMA_HD InterpolationOutputs(const InterpolationLine<Real>& line, int position)
      : begin(0), end(line.out) {
    if (line.step <= 0) return;
    const int minimum = static_cast<int>(static_cast<Real>(position - 1) / line.step) - 1,
              maximum = static_cast<int>(static_cast<Real>(position + 1) / line.step) + 2;
    if (minimum > begin) begin = minimum;
    if (maximum < end) end = maximum;
  }
};

// GPU, float32 and 16 bits. Returns false, and writes nothing, for a case that the generic body
// must compute.
bool interpolate_gpu(Context& context, const InterpolationCut& cut, const Tensor& x,
                     const Tensor& y);
bool interpolate_gradient_gpu(Context& context, const InterpolationCut& cut, const Tensor& dy,
                              const Tensor& dx);

}  // namespace crema
