#include "data/transforms/warp.h"

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

PlaneMap scaling(double x, double y) { return {{x, 0, 0, 0, y, 0, 0, 0, 1}}; }

PlaneMap translation(double x, double y) { return {{1, 0, x, 0, 1, y, 0, 0, 1}}; }

// `map`, with (x, y) in the place of the origin.
PlaneMap about(double x, double y, const PlaneMap& map) {
  return translation(x, y) * map * translation(-x, -y);
}

// The map of the unit square to a convex quadrangle (Heckbert, "Fundamentals of texture mapping and
// image warping", 1989, section 2.2.3).
PlaneMap map_of_square(const PlanePoint (&to)[4]) {
  const double dx1 = to[1].x - to[2].x, dx2 = to[3].x - to[2].x, dy1 = to[1].y - to[2].y,
               dy2 = to[3].y - to[2].y, sum_x = to[0].x - to[1].x + to[2].x - to[3].x,
               sum_y = to[0].y - to[1].y + to[2].y - to[3].y;
  const double area = dx1 * dy2 - dx2 * dy1, g = (sum_x * dy2 - dx2 * sum_y) / area,
               h = (dx1 * sum_y - sum_x * dy1) / area;
  return {{to[1].x - to[0].x + g * to[1].x, to[3].x - to[0].x + h * to[3].x, to[0].x,
           to[1].y - to[0].y + g * to[1].y, to[3].y - to[0].y + h * to[3].y, to[0].y, g, h, 1}};
}

// Each pixel is the mean of rows x columns pixels, or of what there is of them at the border.
Image mean_of_blocks(const Image& image, int64_t rows, int64_t columns) {
  const int64_t channels = image.channels;
  Image smaller{
      channels, (image.height + rows - 1) / rows, (image.width + columns - 1) / columns, {}};
  smaller.pixels.reserve(static_cast<size_t>(channels * smaller.height * smaller.width));
  std::vector<int64_t> sums(static_cast<size_t>(smaller.width * channels));
  for (int64_t top = 0; top < image.height; top += rows) {
    const int64_t bottom = std::min(top + rows, image.height);
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t y = top; y < bottom; ++y) {
      const uint8_t* from = image.pixels.data() + y * image.width * channels;
      for (int64_t x = 0; x < image.width; ++x)
        for (int64_t c = 0; c < channels; ++c) sums[x / columns * channels + c] += *from++;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
      const int64_t left = i / channels * columns;
      const int64_t count = (bottom - top) * (std::min(left + columns, image.width) - left);
      smaller.pixels.push_back(static_cast<uint8_t>((2 * sums[i] + count) / (2 * count)));
    }
  }
  return smaller;
}

// Calls take(x, y, to) for each pixel of the result whose centre maps to the point (x, y) of the
// image. Others are `fill`.
template <typename Take>
Image sample_all(const Image& image, const Warp& warp, const std::vector<uint8_t>& fill,
                 const Take& take) {
  const int64_t channels = image.channels;
  Image result{channels, warp.height, warp.width, {}};
  result.pixels.resize(static_cast<size_t>(channels * warp.height * warp.width));
  const double* const m = warp.source.v;
  const bool affine = m[6] == 0 && m[7] == 0 && m[8] == 1;
  const auto rows = static_cast<double>(image.height), columns = static_cast<double>(image.width);
  uint8_t* to = result.pixels.data();
  for (int64_t row = 0; row < warp.height; ++row) {
    const double y = static_cast<double>(row) + 0.5;
    for (int64_t column = 0; column < warp.width; ++column, to += channels) {
      const double x = static_cast<double>(column) + 0.5;
      const double w = affine ? 1 : m[6] * x + m[7] * y + m[8], factor = affine ? 1 : 1 / w;
      const double at_x = (m[0] * x + m[1] * y + m[2]) * factor,
                   at_y = (m[3] * x + m[4] * y + m[5]) * factor;
      // If w is not above 0, the point is behind the viewer.
      if (w > 0 && at_x >= 0 && at_y >= 0 && at_x < columns && at_y < rows) {
        take(at_x, at_y, to);
      } else {
        for (int64_t c = 0; c < channels; ++c) to[c] = fill[c % static_cast<int64_t>(fill.size())];
      }
    }
  }
  return result;
}

// kChannels 0: of any number.
template <int kChannels>
Image sample_bilinear(const Image& image, const Warp& warp, const std::vector<uint8_t>& fill) {
  const int64_t channels = kChannels > 0 ? kChannels : image.channels,
                line = image.width * channels;
  const int64_t last_row = image.height - 1, last_column = image.width - 1;
  return sample_all(image, warp, fill, [&](double at_x, double at_y, uint8_t* to) {
    const double x = at_x - 0.5, y = at_y - 0.5;  // from the centre of the first pixel
    const int64_t left = x < 0 ? -1 : static_cast<int64_t>(x),
                  top = y < 0 ? -1 : static_cast<int64_t>(y);
    const auto right = static_cast<float>(x - static_cast<double>(left)),
               down = static_cast<float>(y - static_cast<double>(top));
    const int64_t x0 = std::max<int64_t>(left, 0) * channels,
                  x1 = std::min(left + 1, last_column) * channels;
    const uint8_t* const upper = image.pixels.data() + std::max<int64_t>(top, 0) * line;
    const uint8_t* const lower = image.pixels.data() + std::min(top + 1, last_row) * line;
    for (int64_t c = 0; c < channels; ++c) {
      const auto between = [&](const uint8_t* row) {
        const auto first = static_cast<float>(row[x0 + c]),
                   second = static_cast<float>(row[x1 + c]);
        return first + (second - first) * right;
      };
      const float above = between(upper), below = between(lower);
      to[c] = static_cast<uint8_t>(std::nearbyint(above + (below - above) * down));
    }
  });
}

template <int kChannels>
Image sample_nearest(const Image& image, const Warp& warp, const std::vector<uint8_t>& fill) {
  const int64_t channels = kChannels > 0 ? kChannels : image.channels;
  return sample_all(image, warp, fill, [&](double at_x, double at_y, uint8_t* to) {
    const auto x = static_cast<int64_t>(at_x), y = static_cast<int64_t>(at_y);
    const uint8_t* const from = image.pixels.data() + (y * image.width + x) * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
  });
}

// Whether every pixel of the result is one of the image, so that nothing needs interpolation.
bool moves_whole_pixels(const PlaneMap& map) {
  const double* const m = map.v;
  return m[6] == 0 && m[7] == 0 && m[8] == 1 && m[1] == 0 && m[3] == 0 && std::abs(m[0]) == 1 &&
         std::abs(m[4]) == 1 && m[2] == std::floor(m[2]) && m[5] == std::floor(m[5]);
}

}  // namespace

PlanePoint PlaneMap::operator()(const PlanePoint& from) const {
  const double w = v[6] * from.x + v[7] * from.y + v[8];
  return {(v[0] * from.x + v[1] * from.y + v[2]) / w, (v[3] * from.x + v[4] * from.y + v[5]) / w};
}

PlaneMap PlaneMap::operator*(const PlaneMap& right) const {
  PlaneMap product;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) sum += v[3 * row + k] * right.v[3 * k + column];
      product.v[3 * row + column] = sum;
    }
  }
  return product;
}

PlaneMap PlaneMap::inverse() const {
  PlaneMap result;
  const double determinant = v[0] * (v[4] * v[8] - v[5] * v[7]) -
                             v[1] * (v[3] * v[8] - v[5] * v[6]) +
                             v[2] * (v[3] * v[7] - v[4] * v[6]);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      const int r1 = (column + 1) % 3, r2 = (column + 2) % 3, c1 = (row + 1) % 3,
                c2 = (row + 2) % 3;
      result.v[3 * row + column] =
          (v[3 * r1 + c1] * v[3 * r2 + c2] - v[3 * r1 + c2] * v[3 * r2 + c1]) / determinant;
    }
  }
  return result;
}

void Warp::add(const PlaneMap& change) {
  source = source * change;
  any = true;
}

void Warp::crop(double top, double left, double part_height, double part_width, int64_t to_height,
                int64_t to_width) {
  const double y = part_height / static_cast<double>(to_height),
               x = part_width / static_cast<double>(to_width);
  add(translation(left, top) * scaling(x, y));
  rows = std::max<int64_t>(1, static_cast<int64_t>(y));
  columns = std::max<int64_t>(1, static_cast<int64_t>(x));
  height = to_height;
  width = to_width;
}

void Warp::flip(bool left_to_right, bool top_to_bottom) {
  if (left_to_right) add({{-1, 0, static_cast<double>(width), 0, 1, 0, 0, 0, 1}});
  if (top_to_bottom) add({{1, 0, 0, 0, -1, static_cast<double>(height), 0, 0, 1}});
}

void Warp::rotate(double angle) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double cosine = std::cos(angle * kDegree), sine = std::sin(angle * kDegree);
  add(about(static_cast<double>(width) / 2, static_cast<double>(height) / 2,
            {{cosine, -sine, 0, sine, cosine, 0, 0, 0, 1}}));
}

void Warp::shear(double along_x, double along_y, double x, double y) {
  add(about(x, y, {{1, along_x, 0, along_y, 1, 0, 0, 0, 1}}));
}

void Warp::translate(double right, double down) { add(translation(-right, -down)); }

void Warp::move_corners(const PlanePoint (&to)[4]) {
  add(scaling(static_cast<double>(width), static_cast<double>(height)) *
      map_of_square(to).inverse());
}

int Warp::possible_shrink() const {
  int by = 1;
  while (by < 8 && 2 * by <= std::min(rows, columns)) by *= 2;
  return by;
}

void Warp::shrink(int by) {
  source = scaling(1. / by, 1. / by) * source;
  rows /= by;
  columns /= by;
}

Image warp_image(const Image& image, const Warp& warp, const std::vector<uint8_t>& fill) {
  if (!warp.any) return image;
  if (warp.rows > 1 || warp.columns > 1) {
    const auto rows = static_cast<double>(warp.rows), columns = static_cast<double>(warp.columns);
    Warp rest = warp;
    rest.rows = rest.columns = 1;
    rest.source = scaling(1 / columns, 1 / rows) * warp.source;
    return warp_image(mean_of_blocks(image, warp.rows, warp.columns), rest, fill);
  }
  if (moves_whole_pixels(warp.source)) return warp_labels(image, warp, fill);
  if (image.channels == 1) return sample_bilinear<1>(image, warp, fill);
  if (image.channels == 3) return sample_bilinear<3>(image, warp, fill);
  return sample_bilinear<0>(image, warp, fill);
}

Image warp_labels(const Image& labels, const Warp& warp, const std::vector<uint8_t>& fill) {
  if (!warp.any) return labels;
  if (labels.channels == 1) return sample_nearest<1>(labels, warp, fill);
  if (labels.channels == 3) return sample_nearest<3>(labels, warp, fill);
  return sample_nearest<0>(labels, warp, fill);
}

std::vector<Object> warp_objects(const std::vector<Object>& objects, const Warp& warp,
                                 int64_t height, int64_t width, const EmitConstraint* constraint) {
  constexpr float kLeast = 0.1f;
  EmitConstraint usual;
  usual.set_emit_type(EmitConstraint::MIN_OVERLAP);
  usual.set_emit_overlap(kLeast);
  if (!warp.any) return objects;
  const auto from_width = static_cast<double>(width), from_height = static_cast<double>(height),
             to_width = static_cast<double>(warp.width),
             to_height = static_cast<double>(warp.height);
  const PlaneMap move = warp.source.inverse();
  std::vector<Object> moved;
  // Only the part of a box inside the image moves: there is nothing behind the viewer.
  for (Object& object : crop_objects(objects, Region{}, nullptr)) {
    Region& box = object.box;
    Region around{1e9f, 1e9f, -1e9f, -1e9f};
    for (const auto& [x, y] : {std::pair{box.xmin, box.ymin},
                               {box.xmax, box.ymin},
                               {box.xmax, box.ymax},
                               {box.xmin, box.ymax}}) {
      const PlanePoint corner = move({x * from_width, y * from_height});
      const auto to_x = static_cast<float>(corner.x / to_width),
                 to_y = static_cast<float>(corner.y / to_height);
      around = {std::min(around.xmin, to_x), std::min(around.ymin, to_y),
                std::max(around.xmax, to_x), std::max(around.ymax, to_y)};
    }
    box = around;
    moved.push_back(object);
  }
  return crop_objects(moved, Region{}, constraint ? constraint : &usual);
}

}  // namespace crema
