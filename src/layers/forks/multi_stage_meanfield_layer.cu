// MultiStageMeanfield: a conditional random field over pixels, solved by several differentiable
// mean-field steps (CRF-RNN).
//   y_0 = s,  y_t = u - C (A F(q) + B G(q))  with q = softmax of y_(t-1) over the classes
//   F, G: means over all pixels, weighted by exp(-d^2 / 2), of a distance d in
//     F  (x, y) / theta_gamma
//     G  (x, y) / theta_alpha, colours / theta_beta
//   and computed on a permutohedral lattice (kernels/crf/permutohedral.h).
// Shapes: scores u (N, C, H, W), the iteration's initial value s likewise (usually the same blob),
// images (N, 3, H, W), y as u after num_iterations.
// Parameters, (1, 1, C, C) each: A, whose diagonal comes from spatial_filter_weights_str, or from a
// file spatial.par in the working directory or next to the net, or is spatial_filter_weight; B
// likewise of bilateral_...; C, -1 on the diagonal.
// Gradient: through all steps to u, s and the parameters; none for the images.
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "layers/forks/mean_field.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Parses numbers separated by blanks.
std::vector<float> numbers_of(const std::string& text, const std::string& where, int64_t minimum) {
  std::istringstream in(text);
  std::vector<float> numbers;
  for (float number; in >> number;) numbers.push_back(number);
  require(static_cast<int64_t>(numbers.size()) >= minimum, where, " has ", numbers.size(),
          " numbers, but ", minimum, " are needed: one for each class");
  numbers.resize(minimum);
  return numbers;
}

class MultiStageMeanfieldLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.keeps_channels = true, .learned = 3};

 private:
  using Param = MultiStageMeanfieldParameter;
  const Param& p() const { return params<Param>(); }
  Arity bottoms() const override { return {3, 3}; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms[0].axes() == 4,
            "MultiStageMeanfield takes scores (N, C, H, W), but bottom 0 is ", bottoms[0].brief());
    require(p().num_iterations() > 0, "num_iterations must be at least 1");
    require(p().theta_alpha() > 0 && p().theta_beta() > 0 && p().theta_gamma() > 0,
            "theta_alpha, theta_beta and theta_gamma must be positive, but are ", p().theta_alpha(),
            ", ", p().theta_beta(), " and ", p().theta_gamma());
    require(
        p().compatibility_mode() == Param::POTTS,
        "compatibility_mode: FILE is not supported; give POTTS, and the matrix in a weight file");
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
    if (file_exists(file)) return numbers_of(read_text(file), file, classes);
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

  // The filter of the pixel coordinates, which all images share, or an image's filter; the next in
  // `memory`.
  static meanfield::MeanFilter filter_in(meanfield::Parts& memory, int dimensions, int64_t pixels) {
    char* const tables = memory.next<char>(Lattice::bytes(dimensions, pixels));
    return {Lattice(tables, dimensions, pixels), memory.next<double>(pixels)};
  }
  // Bytes saved for the backward pass: filters, and the iterations' results.
  static size_t filter_bytes(int64_t images, int64_t pixels) {
    meanfield::Parts parts{nullptr};
    filter_in(parts, 2, pixels);
    for (int64_t n = 0; n < images; ++n) filter_in(parts, 5, pixels);
    return parts.bytes();
  }
  int64_t iteration_values(const Shape& u, bool keeps) const {
    return (keeps ? u[0] * p().num_iterations() : 1) * 4 * u.count(1);
  }

  // Workspace: scratch of the filters, six tensors of an image.
  template <typename T>
  struct Scratch {
    T *of_filter, *tensors;
    float* features;
    char* of_lattice;
    size_t bytes;
    Scratch(Context& context, char* memory, int64_t classes, int64_t pixels) {
      meanfield::Parts parts{memory};
      tensors = parts.next<T>(6 * classes * pixels);
      // Lattices are built while no filter runs, so they share its scratch.
      const size_t filter = 2 * 6 * pixels * std::max<int64_t>(classes * sizeof(T), sizeof(double));
      features = parts.next<float>(5 * pixels);
      of_lattice =
          parts.next<char>(std::max(filter, std::max(lattice_workspace(context, 5, pixels),
                                                     lattice_workspace(context, 2, pixels))));
      of_filter = reinterpret_cast<T*>(of_lattice);
      bytes = parts.bytes();
    }
  };

  struct State : LayerState {
    bool keeps = false;  // each iteration's values, for backward
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape& u = preparation.bottoms[0];
    const int64_t pixels = u.count(2);
    Prepared prepared;
    prepared.make_state<State>().keeps = preparation.backward;
    prepared.saved = {{{static_cast<int64_t>(filter_bytes(u[0], pixels))}, DType::u8},
                      {{iteration_values(u, preparation.backward)}, {}}};
    prepared.workspace = preparation.dtype == DType::f64
                             ? Scratch<double>(context, nullptr, u[1], pixels).bytes
                             : Scratch<float>(context, nullptr, u[1], pixels).bytes;
    return prepared;
  }

  // features: of the pixels, written here.
  template <typename T>
  void make_filter(Context& context, const meanfield::MeanFilter& filter,
                   const meanfield::PixelFeatures<T>& features, char* workspace) const {
    const int64_t pixels = filter.lattice.points;
    parallel_for(context, pixels, features);
    make_lattice(context, filter.lattice, features.features, workspace);
    auto* const ones = reinterpret_cast<double*>(features.features);
    parallel_for(context, pixels, meanfield::Ones{ones});
    lattice_filter(context, filter.lattice, ones, 1, false, filter.shares,
                   reinterpret_cast<double*>(workspace));
    parallel_for(context, pixels, meanfield::ShareOfSum{filter.shares});
  }

  template <typename T>
  static meanfield::Matrices<T> matrices(const std::vector<Tensor>& of) {
    const auto at = [&](int i) { return of[i] ? of[i].data<T>() : nullptr; };
    return {at(0), at(1), at(2)};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& u = pass.bottom[0].shape();
    const int64_t classes = u[1], pixels = u.count(2), each = classes * pixels;
    on(pass.bottom[0], [&]<typename T>() {
      const Scratch<T> s(context, pass.workspace.data<char>(), classes, pixels);
      meanfield::Parts tables{pass.saved[0].data<char>()};
      meanfield::MeanField<T> field{context, classes,    pixels, filter_in(tables, 2, pixels),
                                    {},      s.of_filter};
      make_filter(
          context, field.spatial,
          meanfield::PixelFeatures<T>{pixels, u[3], p().theta_gamma(), 1, nullptr, s.features},
          s.of_lattice);
      T *scores = s.tensors, *y = s.tensors + each, *kept = pass.saved[1].data<T>();
      for (int64_t n = 0; n < u[0]; ++n) {
        field.bilateral = filter_in(tables, 5, pixels);
        make_filter(
            context, field.bilateral,
            meanfield::PixelFeatures<T>{pixels, u[3], p().theta_alpha(), p().theta_beta(),
                                        pass.bottom[2].data<T>() + n * 3 * pixels, s.features},
            s.of_lattice);
        parallel_rows(
            context, pixels, classes,
            meanfield::ToPixels<T>{classes, pixels, pass.bottom[0].data<T>() + n * each, scores});
        parallel_rows(
            context, pixels, classes,
            meanfield::ToPixels<T>{classes, pixels, pass.bottom[1].data<T>() + n * each, y});
        for (uint32_t t = 0; t < p().num_iterations(); ++t) {
          field.forward(matrices<T>(pass.parameters), scores, y, {kept, each});
          if (state_of<State>(pass).keeps) kept += 4 * each;
        }
        parallel_rows(
            context, classes, pixels,
            meanfield::FromPixels<T>{classes, pixels, y, pass.top[0].data<T>() + n * each});
      }
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Shape& u = pass.top_diff[0].shape();
    const int64_t classes = u[1], pixels = u.count(2), each = classes * pixels;
    on(pass.top_diff[0], [&]<typename T>() {
      const Scratch<T> s(context, pass.workspace.data<char>(), classes, pixels);
      meanfield::Parts tables{pass.saved[0].data<char>()};
      meanfield::MeanField<T> field{context, classes,    pixels, filter_in(tables, 2, pixels),
                                    {},      s.of_filter};
      const meanfield::Matrices<T> m = matrices<T>(pass.parameters),
                                   dm = matrices<T>(pass.parameter_diff);
      prepare_diffs(context, pass);
      T *dy = s.tensors, *d_scores = s.tensors + each;
      const int64_t iterations = p().num_iterations();
      for (int64_t n = 0; n < u[0]; ++n) {
        field.bilateral = filter_in(tables, 5, pixels);
        T* const kept = pass.saved[1].data<T>() + n * iterations * 4 * each;
        parallel_rows(
            context, pixels, classes,
            meanfield::ToPixels<T>{classes, pixels, pass.top_diff[0].data<T>() + n * each, dy});
        zero_bytes(context, d_scores, context.device(), each * sizeof(T));
        for (int64_t t = iterations; t-- > 0;)
          field.backward(m, {kept + t * 4 * each, each}, dm, dy, d_scores, s.tensors + 2 * each);
        for (int i = 0; i < 2; ++i) {
          if (!pass.bottom_diff[i]) continue;
          parallel_rows(context, classes, pixels,
                        meanfield::FromPixels<T>{classes, pixels, i == 0 ? d_scores : dy,
                                                 pass.bottom_diff[i].data<T>() + n * each});
        }
      }
    });
  }

  // Clears the diffs that are not accumulated.
  static void prepare_diffs(Context& context, const Backward& pass) {
    for (size_t i = 0; i < pass.parameter_diff.size(); ++i) {
      const Tensor& d = pass.parameter_diff[i];
      if (d && !pass.accumulate[i]) zero_bytes(context, d.raw(), d.device(), d.bytes());
    }
  }

  FillerParameter spatial_, bilateral_, compatibility_;
};

}  // namespace
REGISTER_LAYER(MultiStageMeanfield, MultiStageMeanfieldLayer);
}  // namespace crema
