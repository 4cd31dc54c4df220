// How DetectNetTransformation changes the pixels of images. For .cu files only.
#pragma once

#include <cmath>

#include "layers/forks/detectnet/detectnet_change.h"

namespace crema {

// Changes hue and saturation of a pixel (BGR), as OpenCV defines them.
template <typename T>
struct ShiftHue {
  const T* x;
  T* y;
  const float* mean;
  int64_t positions, mean_step;  // mean_step: of the mean between positions, 0 or 1
  const DetectNetChange* changes;

  CREMA_HD static double part(double value, double chroma, double sector) {
    const double from = sector - 6 * floor(sector / 6);  // 0 to 6
    return value - chroma * fmax(0.0, fmin(1.0, fmin(from, 4 - from)));
  }
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const T* in = x + image * 3 * positions + position;
    T* out = y + image * 3 * positions + position;
    double b = in[0], g = in[positions], r = in[2 * positions];
    const DetectNetChange& c = changes[image];
    if (fabs(c.hue) > 1e-7 || c.saturation < 1 - 1.0 / 255) {
      const double maximum = fmax(r, fmax(g, b)), range = maximum - fmin(r, fmin(g, b));
      double hue = 0;  // in sixths of the circle
      if (range > 0) {
        hue = maximum == r   ? (g - b) / range
              : maximum == g ? 2 + (b - r) / range
                             : 4 + (r - g) / range;
      }
      hue += c.hue / 60;
      const double chroma = range * c.saturation;
      r = part(maximum, chroma, hue + 5);
      g = part(maximum, chroma, hue + 3);
      b = part(maximum, chroma, hue + 1);
    }
    const int64_t at = position * mean_step, step = mean_step ? positions : 1;
    out[0] = static_cast<T>(b - mean[at]);
    out[positions] = static_cast<T>(g - mean[at + step]);
    out[2 * positions] = static_cast<T>(r - mean[at + 2 * step]);
  }
};

// Four neighbours along an axis and their weights (Keys, a = -0.75); the edge pixels are replicated
// outwards.
struct CubicTaps {
  int64_t at[4];
  double weight[4];
  CREMA_HD CubicTaps(double position, int64_t extent) {
    const double whole = floor(position), t = position - whole, a = -0.75;
    const double s = 1 - t, u = 1 + t;
    weight[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    weight[3] = 1 - weight[0] - weight[1] - weight[2];
    for (int i = 0; i < 4; ++i) {
      const int64_t k = static_cast<int64_t>(whole) + i - 1;
      at[i] = k < 0 ? 0 : k >= extent ? extent - 1 : k;
    }
  }
  template <typename T>
  CREMA_HD double row(const T* x) const {
    return weight[0] * x[at[0]] + weight[1] * x[at[1]] + weight[2] * x[at[2]] +
           weight[3] * x[at[3]];
  }
};

template <typename T>
CREMA_HD double cubic(const T* x, int64_t width, const CubicTaps& down, const CubicTaps& across) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += down.weight[i] * across.row(x + down.at[i] * width);
  return sum;
}

template <typename T>
struct MovePixels {
  const T* x;
  T* y;
  int64_t height, width, out_height, out_width;
  const DetectNetChange* changes;
  // row: of an image, with all images stacked vertically.
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / out_height, line = row % out_height;
    const DetectNetChange c = changes[image];
    double across = static_cast<double>(column), down = static_cast<double>(line);
    c.turn_back(across, down);
    const bool inside = c.has(across, down);
    across = (across + 0.5) / c.scale_x - 0.5;
    down = (down + 0.5) / c.scale_y - 0.5;
    if (c.flip) across = static_cast<double>(width - 1) - across;
    if (!inside) across = down = 0;
    const CubicTaps rows(down, height), columns(across, width);
    for (int k = 0; k < 3; ++k) {
      const T* plane = x + (image * 3 + k) * height * width;
      T* to = y + ((image * 3 + k) * out_height + line) * out_width + column;
      *to = inside ? static_cast<T>(cubic(plane, width, rows, columns)) : T(0);
    }
  }
};

}  // namespace crema
