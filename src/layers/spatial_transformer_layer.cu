// SpatialTransformer: resamples each image by a map of its own, which a part of the net predicts.
//   y[n,c,h,w] = x[n,c] at row H * (u + 1) / 2 and column W * (v + 1) / 2, bilinear, 0 outside of x
//   (u, v) = A[n] * (2 h / H' - 1, 2 w / W' - 1, 1): rows come first, as in the forks
//   A: 2 x 3, row by row; entries theta_1_1 to theta_2_3 that the file gives are those of every
//   image, the second bottom has the others in their order
// Shapes: x (N, C, H, W), maps (N, 6 less the fixed entries), y (N, C, H', W') of output_H and
// output_W, the height and width of x when absent. Parameters: none.
// Gradient: each dy in the same shares to the places it was read from, unless to_compute_dU is
// false; that of a map sums dy times the slopes of x at the place that it leads to.
#include "kernels/pointwise.h"
#include "kernels/sum.h"
#include "layers/layer.h"
#include "proto/params/forks_segmentation.pb.h"

namespace crema {
namespace {

constexpr int kEntries = 6;

struct Transformer {
  int64_t channels, height, width, out_height, out_width;
  int64_t given;           // entries that the second bottom has
  int place[kEntries];     // of an entry in it; -1: fixed
  double fixed[kEntries];  // its value then
};

template <typename T>
struct SourcePlace {
  T row, column;
};

template <typename T>
struct AffineMap {
  Transformer t;
  const T* maps;

  template <int kEntry>
  CREMA_HD T entry(int64_t image) const {
    return t.place[kEntry] < 0 ? static_cast<T>(t.fixed[kEntry])
                               : maps[image * t.given + t.place[kEntry]];
  }
  CREMA_HD static T from_middle(int64_t at, int64_t count) {
    return static_cast<T>(2 * at) / static_cast<T>(count) - 1;
  }
  CREMA_HD SourcePlace<T> source(int64_t image, int64_t h, int64_t w) const {
    const T y = from_middle(h, t.out_height), x = from_middle(w, t.out_width);
    const T u = entry<0>(image) * y + entry<1>(image) * x + entry<2>(image);
    const T v = entry<3>(image) * y + entry<4>(image) * x + entry<5>(image);
    return {(u + 1) / 2 * static_cast<T>(t.height), (v + 1) / 2 * static_cast<T>(t.width)};
  }
};

template <typename T>
struct Plane {
  const T* x;
  int64_t height, width;
  CREMA_HD T at(int64_t row, int64_t column) const {
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? x[row * width + column] : T(0);
  }
};

// The four values around a place, and how far it is from the first.
template <typename T>
struct Corners {
  T first, right, below, last, down, across;
  CREMA_HD Corners(const Plane<T>& plane, const SourcePlace<T>& p) {
    // Far outside every corner is 0; only numbers that an index can hold are converted.
    const T r = p.row, c = p.column;
    const T rows = static_cast<T>(plane.height + 1), columns = static_cast<T>(plane.width + 1);
    const bool near = r > -2 && c > -2 && r < rows && c < columns;
    const T top = near ? floor(r) : T(-2), left = near ? floor(c) : T(-2);
    const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
    first = plane.at(row, column);
    right = plane.at(row, column + 1);
    below = plane.at(row + 1, column);
    last = plane.at(row + 1, column + 1);
    down = near ? r - top : T(0);
    across = near ? c - left : T(0);
  }
  CREMA_HD T value() const {
    return (1 - down) * ((1 - across) * first + across * right) +
           down * ((1 - across) * below + across * last);
  }
  CREMA_HD T slope_down() const { return (1 - across) * (below - first) + across * (last - right); }
  CREMA_HD T slope_across() const { return (1 - down) * (right - first) + down * (last - below); }
};

template <typename T>
struct Resample {
  AffineMap<T> map;
  const T* x;
  T* y;
  // row: of all images, channels and rows of y.
  CREMA_HD void operator()(int64_t row, int64_t w) const {
    const Transformer& t = map.t;
    const int64_t plane = row / t.out_height;
    const SourcePlace<T> p = map.source(plane / t.channels, row % t.out_height, w);
    const Plane<T> from{x + plane * t.height * t.width, t.height, t.width};
    y[row * t.out_width + w] = Corners<T>(from, p).value();
  }
};

// All entries of all maps: sum `2 * image` is that of the row coordinate times (y, x, 1), and so
// on; sums count (image, entry), the rows channels and rows of y, the columns its columns.
template <typename T>
struct MapGradient {
  AffineMap<T> map;
  const T *x, *dy;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t row, int64_t w) const {
    const Transformer& t = map.t;
    const int64_t image = sum / t.given, which = sum % t.given;
    int entry = 0;
    for (int k = 0; k < kEntries; ++k) entry = t.place[k] == which ? k : entry;
    const int64_t h = row % t.out_height, plane = image * t.channels + row / t.out_height;
    const Plane<T> from{x + plane * t.height * t.width, t.height, t.width};
    const Corners<T> corners(from, map.source(image, h, w));
    const T slope = entry < 3 ? corners.slope_down() * static_cast<T>(t.height) / 2
                              : corners.slope_across() * static_cast<T>(t.width) / 2;
    const T factor = entry % 3 == 0   ? map.from_middle(h, t.out_height)
                     : entry % 3 == 1 ? map.from_middle(w, t.out_width)
                                      : T(1);
    return dy[(plane * t.out_height + h) * t.out_width + w] * slope * factor;
  }
};

// Which places of y read place (row, column) of x: those whose source is less than one place away.
// Walked through in their order, so that sums come out the same on every run. A row h of y runs
// through x along a line: the columns w near enough lie between two bounds.
template <typename T>
struct ImageGradient {
  AffineMap<T> map;
  const T* dy;
  T* dx;

  // Narrows [first, last] to the w with |start + step * w - middle| < 1, and one beside for
  // rounding.
  CREMA_HD static void narrow(T start, T step, T middle, int64_t* first, int64_t* last) {
    const T low = middle - 1 - start, high = middle + 1 - start;
    if (step == 0) {
      if (low >= 0 || high <= 0) *last = *first - 1;
      return;
    }
    const T a = (step > 0 ? low : high) / step, b = (step > 0 ? high : low) / step;
    const T from = floor(a) - 1, to = ceil(b) + 1;
    if (from > static_cast<T>(*first)) {
      *first = from > static_cast<T>(*last) ? *last + 1 : static_cast<int64_t>(from);
    }
    if (to < static_cast<T>(*last)) {
      *last = to < static_cast<T>(*first) ? *first - 1 : static_cast<int64_t>(to);
    }
  }

  CREMA_HD void operator()(int64_t line, int64_t column) const {
    const Transformer& t = map.t;
    const int64_t plane = line / t.height, row = line % t.height, image = plane / t.channels;
    const T* from = dy + plane * t.out_height * t.out_width;
    T sum = 0;
    for (int64_t h = 0; h < t.out_height; ++h) {
      const SourcePlace<T> start = map.source(image, h, 0);
      const T step_down = map.template entry<1>(image) * static_cast<T>(t.height) /
                          static_cast<T>(t.out_width),
              step_across = map.template entry<4>(image) * static_cast<T>(t.width) /
                            static_cast<T>(t.out_width);
      int64_t first = 0, last = t.out_width - 1;
      narrow(start.row, step_down, static_cast<T>(row), &first, &last);
      narrow(start.column, step_across, static_cast<T>(column), &first, &last);
      for (int64_t w = first; w <= last; ++w) {
        const SourcePlace<T> p = map.source(image, h, w);
        const T down = 1 - fabs(p.row - static_cast<T>(row)),
                across = 1 - fabs(p.column - static_cast<T>(column));
        if (down > 0 && across > 0) sum += down * across * from[h * t.out_width + w];
      }
    }
    dx[line * t.width + column] = sum;
  }
};

class SpatialTransformerLayer : public Layer {
  const SpatialTransformerParameter& p() const { return params<SpatialTransformerParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 1 || p().to_compute_du(); }
  BackwardReads reads() const override { return {true, false}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().transform_type() == "affine", "transform_type is \"", p().transform_type(),
            "\", but only \"affine\" is known");
    require(p().sampler_type() == "bilinear", "sampler_type is \"", p().sampler_type(),
            "\", but only \"bilinear\" is known");
    const bool has[] = {p().has_theta_1_1(), p().has_theta_1_2(), p().has_theta_1_3(),
                        p().has_theta_2_1(), p().has_theta_2_2(), p().has_theta_2_3()};
    const double fixed[] = {p().theta_1_1(), p().theta_1_2(), p().theta_1_3(),
                            p().theta_2_1(), p().theta_2_2(), p().theta_2_3()};
    transformer_.given = 0;
    for (int k = 0; k < kEntries; ++k) {
      transformer_.place[k] = has[k] ? -1 : static_cast<int>(transformer_.given++);
      transformer_.fixed[k] = fixed[k];
    }
    require(transformer_.given > 0,
            "the file gives all six entries of the map: leave out those "
            "that the second bottom shall have");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &maps = bottoms[1];
    require(x.axes() == 4, "SpatialTransformer takes images (N, C, H, W), but bottom 0 is ",
            x.brief());
    const int64_t height = p().has_output_h() ? p().output_h() : x[2],
                  width = p().has_output_w() ? p().output_w() : x[3];
    require(height > 0 && width > 0, "output_H and output_W are ", height, " and ", width,
            ", but must be positive");
    require(maps.axes() >= 1 && maps[0] == x[0] && maps.count(1) == transformer_.given,
            "the maps, bottom 1, are ", maps.brief(), ", but must be ", x[0], "x",
            transformer_.given, ": for each image the entries that the file does not fix");
    return {{{x[0], x[1], height, width}}, {}};
  }

  Transformer of(const Shape& x, const Shape& y) const {
    Transformer t = transformer_;
    t.channels = x[1];
    t.height = x[2];
    t.width = x[3];
    t.out_height = y[2];
    t.out_width = y[3];
    return t;
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    on(x, [&]<typename T>() {
      const AffineMap<T> map{of(x.shape(), y.shape()), pass.bottom[1].data<T>()};
      parallel_rows(context, y.shape().count(0, 3), y.shape()[3],
                    Resample<T>{map, x.data<T>(), y.data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0];
    on(x, [&]<typename T>() {
      const AffineMap<T> map{of(x.shape(), dy.shape()), pass.bottom[1].data<T>()};
      const Shape &in = x.shape(), &out = dy.shape();
      if (const Tensor& dx = pass.bottom_diff[0]) {
        parallel_rows(context, in.count(0, 3), in[3],
                      ImageGradient<T>{map, dy.data<T>(), dx.data<T>()});
      }
      if (const Tensor& d_maps = pass.bottom_diff[1]) {
        parallel_sum<T>(context, {in[0] * map.t.given, in[1] * out[2], out[3]},
                        MapGradient<T>{map, x.data<T>(), dy.data<T>()}, {d_maps.data<T>()});
      }
    });
  }

  Transformer transformer_{};
};

}  // namespace
REGISTER_LAYER(SpatialTransformer, SpatialTransformerLayer);
}  // namespace crema
