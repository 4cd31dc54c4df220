// The patches of many images at once (conv_im2col_batched.cu), element by element, for loops that run
// on either device. T: any real type.
//   channels-last   patches (position, group, tap, channel)
//   row-major       patches (image, group, channel, tap, position)
#pragma once

#include "kernels/conv/conv_geometry.h"
#include "kernels/core/divisor.h"
#include "tensor/half.h"

namespace crema {

// Where the elements of some images and of their patches are; indices are below Divisor::kMax.
struct PatchIndex {
  ConvGeometry g;
  bool last;  // channels-last
  Divisor channels, groups, taps, points, pixels;
  Divisor in[kMaxSpatialAxes], out[kMaxSpatialAxes], kernel[kMaxSpatialAxes],
      stride[kMaxSpatialAxes];

  PatchIndex(const ConvGeometry& g, bool last)
      : g(g),
        last(last),
        channels(g.in_channels),
        groups(g.groups),
        taps(g.taps),
        points(g.out_points),
        pixels(g.in_points) {
    for (int axis = 0; axis < g.axes; ++axis) {
      in[axis] = Divisor(g.in[axis]);
      out[axis] = Divisor(g.out[axis]);
      kernel[axis] = Divisor(g.kernel[axis]);
      stride[axis] = Divisor(g.stride[axis]);
    }
  }

  struct Position {
    uint32_t image, group, channel;
    uint32_t tap, point;
  };
  // The position of an element of the patches.
  CREMA_HD Position in_patches(uint32_t i) const {
    Position p{};
    if (last) {  // each split leaves the fastest index behind
      p.channel = i, i = channels.split(p.channel);
      p.tap = i, i = taps.split(p.tap);
      p.group = i, i = groups.split(p.group);
      p.point = i, p.image = points.split(p.point);
    } else {
      p.point = i, i = points.split(p.point);
      p.tap = i, i = taps.split(p.tap);
      p.channel = i, i = channels.split(p.channel);
      p.group = i, p.image = groups.split(p.group);
    }
    return p;
  }
  CREMA_HD int64_t patch(const Position& p) const {
    const int64_t row = p.image * g.out_points + p.point, block = p.image * g.groups + p.group;
    return last ? ((row * g.groups + p.group) * g.taps + p.tap) * g.in_channels + p.channel
                : ((block * g.in_channels + p.channel) * g.taps + p.tap) * g.out_points + p.point;
  }
  // The position of an element of the images, with its pixel in place of the point.
  CREMA_HD Position in_images(uint32_t i) const {
    Position p{};
    if (last) {
      p.channel = i, i = channels.split(p.channel);
      p.group = i, i = groups.split(p.group);
      p.point = i, p.image = pixels.split(p.point);
    } else {
      p.point = i, i = pixels.split(p.point);
      p.channel = i, i = channels.split(p.channel);
      p.group = i, p.image = groups.split(p.group);
    }
    return p;
  }
  CREMA_HD int64_t pixel(const Position& p, int64_t at) const {
    const int64_t row = p.image * g.in_points + at, block = p.image * g.groups + p.group;
    return last ? (row * g.groups + p.group) * g.in_channels + p.channel
                : (block * g.in_channels + p.channel) * g.in_points + at;
  }
};

template <typename T>
struct GatherPatches {
  PatchIndex n;
  const T* x;
  T* patches;
  CREMA_HD void operator()(int64_t i) const {
    const PatchIndex::Position p = n.in_patches(static_cast<uint32_t>(i));
    uint32_t taps = p.tap, points = p.point;
    int64_t at = 0, step = 1;
    bool inside = true;
    for (int axis = n.g.axes - 1; axis >= 0; --axis) {
      uint32_t tap = taps, point = points;
      taps = n.kernel[axis].split(tap);
      points = n.out[axis].split(point);
      const int64_t from = point * n.g.stride[axis] - n.g.pad[axis] + tap * n.g.dilation[axis];
      inside = inside && from >= 0 && from < n.g.in[axis];
      at += from * step;
      step *= n.g.in[axis];
    }
    patches[i] = inside ? x[n.pixel(p, at)] : T(0);
  }
};

// The gradient of a pixel: the sum over the windows that it is in (col2im).
template <typename T>
struct SumPatches {
  PatchIndex n;
  const Compute<T>* patches;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    PatchIndex::Position p = n.in_images(static_cast<uint32_t>(i));
    int64_t at[kMaxSpatialAxes];
    uint32_t rest = p.point;
    for (int axis = n.g.axes - 1; axis >= 0; --axis) {
      uint32_t here = rest;
      rest = n.in[axis].split(here);
      at[axis] = here + n.g.pad[axis];
    }
    Compute<T> sum = 0;
    int64_t tap[kMaxSpatialAxes] = {};
    p.tap = 0;
    do {
      int64_t point = 0;
      bool inside = true;
      for (int axis = 0; axis < n.g.axes; ++axis) {
        const int64_t from = at[axis] - tap[axis] * n.g.dilation[axis];
        uint32_t rest_of_stride = static_cast<uint32_t>(from);
        const uint32_t out = n.stride[axis].split(rest_of_stride);
        inside = inside && from >= 0 && rest_of_stride == 0 && out < n.g.out[axis];
        point = point * n.g.out[axis] + out;
      }
      if (inside) {
        p.point = static_cast<uint32_t>(point);
        sum += patches[n.patch(p)];
      }
      ++p.tap;
    } while (next_position(tap, n.g.kernel, n.g.axes));
    dx[i] = sum;
  }
};

// Row-major: dw from the gradients of single images.
template <typename T>
struct SumImages {
  int64_t count, images;
  const T* parts;
  T* dw;
  bool accumulate;
  CREMA_HD void operator()(int64_t i) const {
    T sum = 0;
    for (int64_t image = 0; image < images; ++image) sum += parts[image * count + i];
    dw[i] = accumulate ? dw[i] + sum : sum;
  }
};

}  // namespace crema
