// Which places a linear interpolation reads, with what weights, and which goals read a place.
#pragma once

#include "base/host_device.h"
#include "kernels/move/interpolate.h"

namespace crema {

// One axis: `in` source positions from `start` on, `out` goals.
template <typename Real>
struct InterpolationLine {
  int start, in, out;
  Real step;  // source positions from one goal to the next

  InterpolationLine(int64_t extent, const InterpolationCut& cut, int64_t goals)
      : start(static_cast<int>(cut.before)),
        in(static_cast<int>(extent - cut.before - cut.behind)),
        out(static_cast<int>(goals)),
        step(goals > 1 ? static_cast<Real>(static_cast<double>(in - 1) / (out - 1)) : 0) {}
};

// What a goal is made of: (1 - part) of source position `first`, `part` of `second`.
template <typename Real>
struct InterpolationTap {
  int first, second;
  Real part;
  CREMA_HD InterpolationTap(const InterpolationLine<Real>& line, int goal) {
    const Real at = line.step * static_cast<Real>(goal);
    const int whole = static_cast<int>(at);
    first = whole < line.in - 1 ? whole : line.in - 1;
    second = first < line.in - 1 ? first + 1 : first;
    part = at - static_cast<Real>(first);
  }
  CREMA_HD Real weight(int position) const {
    return (position == first ? 1 - part : Real(0)) + (position == second ? part : Real(0));
  }
};

// The goals that a source position may have a part in: [begin, end).
template <typename Real>
struct InterpolationGoals {
  int begin, end;
  CREMA_HD InterpolationGoals(const InterpolationLine<Real>& line, int position)
      : begin(0), end(line.out) {
    if (line.step <= 0) return;
    const int least = static_cast<int>(static_cast<Real>(position - 1) / line.step) - 1,
              most = static_cast<int>(static_cast<Real>(position + 1) / line.step) + 2;
    if (least > begin) begin = least;
    if (most < end) end = most;
  }
};

// GPU, float32 and 16 bits: false, with nothing done, where the body for every device has to.
bool interpolate_gpu(Context& context, const InterpolationCut& cut, const Tensor& x,
                     const Tensor& y);
bool interpolate_gradient_gpu(Context& context, const InterpolationCut& cut, const Tensor& dy,
                              const Tensor& dx);

}  // namespace crema
