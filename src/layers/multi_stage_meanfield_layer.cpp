// MultiStageMeanfield: a conditional random field over pixels, solved by some steps of mean field
// that gradients go through (CRF-RNN).
//   y_0 = s,  y_t = u - C (A F(q) + B G(q))  with q = softmax of y_(t-1) over the classes
//   F, G: means over all pixels, weighted by exp(-d^2 / 2), of a distance d in
//     F  (x, y) / theta_gamma
//     G  (x, y) / theta_alpha, colours / theta_beta
//   and computed on a permutohedral lattice (kernels/permutohedral.h).
// Shapes: scores u (N, C, H, W), where the iteration begins s likewise (mostly the same blob),
// images (N, 3, H, W), y as u after num_iterations. Parameters, (1, 1, C, C) each: A, whose
// diagonal comes from spatial_filter_weights_str, or from a file spatial.par in the working
// directory or beside the net, or is spatial_filter_weight; B likewise of bilateral_...; C, -1 on
// the diagonal.
// Gradient: through all steps to u, s and the parameters; none for the images.
#include <cmath>
#include <sstream>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "kernels/gemm.h"
#include "kernels/permutohedral.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
std::vector<T> to_host(Context& context, const Tensor& tensor) {
  if constexpr (std::is_same_v<T, double>) {
    return to_doubles(context, tensor);
  } else {
    return to_floats(context, tensor);
  }
}

void from_host(Context& context, const std::vector<float>& values, const Tensor& tensor) {
  from_floats(context, values.data(), tensor);
}
void from_host(Context& context, const std::vector<double>& values, const Tensor& tensor) {
  from_doubles(context, values.data(), tensor);
}

// One of the two filters, its sums made means.
struct MeanFilter {
  PermutohedralLattice lattice;
  std::vector<double> share;  // of each pixel: 1 / the sum of its weights

  MeanFilter(const std::vector<float>& features, int dimensions) : lattice(features, dimensions) {
    const std::vector<double> ones(lattice.points(), 1);
    share.resize(lattice.points());
    lattice.filter(ones.data(), 1, false, share.data());
    for (double& sum : share) sum = 1 / (sum + 1e-20);
  }

  template <typename T>
  void scale(int64_t planes, T* x) const {
    const int64_t points = lattice.points();
#pragma omp parallel for
    for (int64_t c = 0; c < planes; ++c) {
      for (int64_t p = 0; p < points; ++p) x[c * points + p] *= static_cast<T>(share[p]);
    }
  }
  template <typename T>
  std::vector<T> mean(const std::vector<T>& x, int64_t planes) const {
    std::vector<T> y(x.size());
    lattice.filter(x.data(), planes, false, y.data());
    scale(planes, y.data());
    return y;
  }
  // Overwrites dy.
  template <typename T>
  std::vector<T> mean_gradient(std::vector<T>& dy, int64_t planes) const {
    std::vector<T> dx(dy.size());
    scale(planes, dy.data());
    lattice.filter(dy.data(), planes, true, dx.data());
    return dx;
  }
};

// What an iteration leaves for its gradient; (classes, pixels) each.
template <typename T>
struct Iteration {
  std::vector<T> probabilities, spatial, bilateral, message;
};

template <typename T>
struct FieldOfImage {
  std::shared_ptr<const MeanFilter> spatial, bilateral;
  std::vector<Iteration<T>> iterations;
};

// Parameters, or their gradients.
template <typename T>
struct Matrices {
  std::vector<T> spatial, bilateral, compatibility;  // (classes, classes)
};

template <typename T>
struct MeanField {
  Context& host;
  int64_t classes, pixels;

  // c = op(a) b + beta c of classes by classes and classes by pixels.
  void apply(const std::vector<T>& a, bool transposed, const std::vector<T>& b, float beta,
             std::vector<T>& c) const {
    Gemm g;
    g.transpose_a = transposed;
    g.m = g.k = classes;
    g.n = pixels;
    g.beta = beta;
    gemm(host, g, a.data(), b.data(), c.data());
  }
  // c += a b^T of classes by pixels.
  void add_products(const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& c) const {
    Gemm g;
    g.transpose_b = true;
    g.m = g.n = classes;
    g.k = pixels;
    g.beta = 1;
    gemm(host, g, a.data(), b.data(), c.data());
  }

  void softmax(std::vector<T>& x) const {
#pragma omp parallel for
    for (int64_t p = 0; p < pixels; ++p) {
      T most = x[p], sum = 0;
      for (int64_t c = 1; c < classes; ++c) most = std::max(most, x[c * pixels + p]);
      for (int64_t c = 0; c < classes; ++c)
        sum += x[c * pixels + p] = std::exp(x[c * pixels + p] - most);
      for (int64_t c = 0; c < classes; ++c) x[c * pixels + p] /= sum;
    }
  }
  // dx of the softmax whose output is q, in the memory of dq.
  void softmax_gradient(const std::vector<T>& q, std::vector<T>& dq) const {
#pragma omp parallel for
    for (int64_t p = 0; p < pixels; ++p) {
      T sum = 0;
      for (int64_t i = p; i < classes * pixels; i += pixels) sum += q[i] * dq[i];
      for (int64_t i = p; i < classes * pixels; i += pixels) dq[i] = q[i] * (dq[i] - sum);
    }
  }

  // y becomes that of the next iteration.
  Iteration<T> forward(const FieldOfImage<T>& image, const Matrices<T>& m, const T* scores,
                       std::vector<T>& y) const {
    softmax(y);
    Iteration<T> it;
    it.spatial = image.spatial->mean(y, classes);
    it.bilateral = image.bilateral->mean(y, classes);
    it.message.resize(y.size());
    apply(m.spatial, false, it.spatial, 0, it.message);
    apply(m.bilateral, false, it.bilateral, 1, it.message);
    it.probabilities = y;
    apply(m.compatibility, false, it.message, 0, y);
    for (size_t i = 0; i < y.size(); ++i) y[i] = scores[i] - y[i];
    return it;
  }

  // dy becomes that of the iteration before.
  void backward(const FieldOfImage<T>& image, const Iteration<T>& it, const Matrices<T>& m,
                Matrices<T>& dm, std::vector<T>& dy, T* d_scores) const {
    std::vector<T> d_message(dy.size()), d_mean(dy.size());
    for (size_t i = 0; i < dy.size(); ++i) {
      d_scores[i] += dy[i];
      dy[i] = -dy[i];
    }
    add_products(dy, it.message, dm.compatibility);
    apply(m.compatibility, true, dy, 0, d_message);
    add_products(d_message, it.spatial, dm.spatial);
    add_products(d_message, it.bilateral, dm.bilateral);
    apply(m.spatial, true, d_message, 0, d_mean);
    dy = image.spatial->mean_gradient(d_mean, classes);
    apply(m.bilateral, true, d_message, 0, d_mean);
    const std::vector<T> more = image.bilateral->mean_gradient(d_mean, classes);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] += more[i];
    softmax_gradient(it.probabilities, dy);
  }
};

// Numbers between blanks.
std::vector<float> numbers_of(const std::string& text, const std::string& where, int64_t least) {
  std::istringstream in(text);
  std::vector<float> numbers;
  for (float number; in >> number;) numbers.push_back(number);
  require(static_cast<int64_t>(numbers.size()) >= least, where, " has ", numbers.size(),
          " numbers, but ", least, " are needed: one for each class");
  numbers.resize(least);
  return numbers;
}

class MultiStageMeanfieldLayer : public Layer {
  using Param = MultiStageMeanfieldParameter;
  const Param& p() const { return params<Param>(); }
  Arity bottoms() const override { return {3, 3}; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  bool works_on_host() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms[0].axes() == 4,
            "MultiStageMeanfield takes scores (N, C, H, W), but bottom 0 is ", bottoms[0].brief());
    require(p().num_iterations() > 0, "num_iterations must be at least 1");
    require(p().theta_alpha() > 0 && p().theta_beta() > 0 && p().theta_gamma() > 0,
            "theta_alpha, theta_beta and theta_gamma must be positive, but are ", p().theta_alpha(),
            ", ", p().theta_beta(), " and ", p().theta_gamma());
    require(p().compatibility_mode() == Param::POTTS,
            "compatibility_mode: FILE is not known; give POTTS, and the matrix in a weight file");
    const int64_t classes = bottoms[0][1];
    const auto add = [&](FillerParameter& filler, const std::vector<float>& values) {
      filler.set_type("diagonal");
      filler.mutable_diagonal()->Assign(values.begin(), values.end());
      add_parameter({1, 1, classes, classes}, filler);
    };
    add(spatial_, first_weights("spatial", p().spatial_filter_weights_str(),
                                p().spatial_filter_weight(), classes));
    add(bilateral_, first_weights("bilateral", p().bilateral_filter_weights_str(),
                                  p().bilateral_filter_weight(), classes));
    add(compatibility_, {-1});
  }

  std::vector<float> first_weights(const std::string& kernel, const std::string& text, float weight,
                                   int64_t classes) const {
    if (!text.empty()) return numbers_of(text, kernel + "_filter_weights_str", classes);
    const std::string file = find_file(kernel + ".par", folder());
    if (file_exists(file)) return numbers_of(read_file(file), file, classes);
    return {weight};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &u = bottoms[0], wanted = {u[0], 3, u[2], u[3]};
    require(bottoms[1] == u, "the iteration begins with bottom 1, ", bottoms[1].brief(),
            ", which must be like the scores, ", u.brief());
    require(bottoms[2] == wanted, "the images are ", bottoms[2].brief(),
            ", but with these scores must be ", wanted.brief());
    return {{u}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) override {
    keeps_ = preparation.backward;
    return {};
  }

  // Places, and with an image its colours, in deviations of the kernel.
  static std::vector<float> features(const Shape& shape, float reach, const float* image,
                                     float colour_reach) {
    const int64_t pixels = shape.count(2);
    std::vector<float> all;
    all.reserve(pixels * (image ? 5 : 2));
    for (int64_t i = 0; i < pixels; ++i) {
      all.push_back(static_cast<float>(i % shape[3]) / reach);
      all.push_back(static_cast<float>(i / shape[3]) / reach);
      for (int c = 0; image && c < 3; ++c) all.push_back(image[c * pixels + i] / colour_reach);
    }
    return all;
  }

  template <typename T>
  Matrices<T> matrices(Context& context, const std::vector<Tensor>& parameters) const {
    return {to_host<T>(context, parameters[0]), to_host<T>(context, parameters[1]),
            to_host<T>(context, parameters[2])};
  }

  void forward(Context& context, const Forward& pass) override {
    const Shape& shape = pass.bottom[0].shape();
    if (!places_ || shape.dims() != places_of_) {
      places_ = std::make_shared<MeanFilter>(features(shape, p().theta_gamma(), nullptr, 1), 2);
      places_of_ = shape.dims();
    }
    const std::vector<float> images = to_floats(context, pass.bottom[2]);
    on(pass.bottom[0], [&]<typename T>() {
      const auto scores = to_host<T>(context, pass.bottom[0]),
                 start = to_host<T>(context, pass.bottom[1]);
      const auto m = matrices<T>(context, pass.parameters);
      const MeanField<T> field{host_, shape[1], shape.count(2)};
      auto& fields = std::get<Fields<T>>(fields_);
      fields.clear();
      std::vector<T> all;
      for (int64_t n = 0; n < shape[0]; ++n) {
        FieldOfImage<T> image{places_,
                              std::make_shared<MeanFilter>(
                                  features(shape, p().theta_alpha(),
                                           images.data() + n * 3 * field.pixels, p().theta_beta()),
                                  5),
                              {}};
        const int64_t each = shape.count(1);
        std::vector<T> y(start.begin() + n * each, start.begin() + (n + 1) * each);
        for (uint32_t t = 0; t < p().num_iterations(); ++t) {
          Iteration<T> it = field.forward(image, m, scores.data() + n * each, y);
          if (keeps_) image.iterations.push_back(std::move(it));
        }
        all.insert(all.end(), y.begin(), y.end());
        if (keeps_) fields.push_back(std::move(image));
      }
      from_host(context, all, pass.top[0]);
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Shape& shape = pass.top_diff[0].shape();
    on(pass.top_diff[0], [&]<typename T>() {
      const auto dy = to_host<T>(context, pass.top_diff[0]);
      const auto m = matrices<T>(context, pass.parameters);
      Matrices<T> dm{std::vector<T>(m.spatial.size()), std::vector<T>(m.spatial.size()),
                     std::vector<T>(m.spatial.size())};
      const MeanField<T> field{host_, shape[1], shape.count(2)};
      std::vector<T> d_scores(dy.size()), d_start;
      for (int64_t n = 0; n < shape[0]; ++n) {
        const FieldOfImage<T>& image = std::get<Fields<T>>(fields_)[n];
        const int64_t each = shape.count(1);
        std::vector<T> d(dy.begin() + n * each, dy.begin() + (n + 1) * each);
        for (size_t t = image.iterations.size(); t-- > 0;)
          field.backward(image, image.iterations[t], m, dm, d, d_scores.data() + n * each);
        d_start.insert(d_start.end(), d.begin(), d.end());
      }
      if (pass.bottom_diff[0]) from_host(context, d_scores, pass.bottom_diff[0]);
      if (pass.bottom_diff[1]) from_host(context, d_start, pass.bottom_diff[1]);
      give(context, pass, 0, dm.spatial);
      give(context, pass, 1, dm.bilateral);
      give(context, pass, 2, dm.compatibility);
    });
  }

  template <typename T>
  static void give(Context& context, const Backward& pass, int parameter, std::vector<T>& d) {
    const Tensor& to = pass.parameter_diff[parameter];
    if (!to) return;
    if (pass.accumulate[parameter]) {
      const auto before = to_host<T>(context, to);
      for (size_t i = 0; i < d.size(); ++i) d[i] += before[i];
    }
    from_host(context, d, to);
  }

  template <typename T>
  using Fields = std::vector<FieldOfImage<T>>;

  Context host_{Device::cpu};
  FillerParameter spatial_, bilateral_, compatibility_;
  bool keeps_ = false;
  std::shared_ptr<const MeanFilter> places_;
  std::vector<int64_t> places_of_;                    // the shape that places_ is for
  std::tuple<Fields<float>, Fields<double>> fields_;  // of the last forward pass
};

}  // namespace
REGISTER_LAYER(MultiStageMeanfield, MultiStageMeanfieldLayer);
}  // namespace crema
