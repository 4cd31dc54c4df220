#include "layers/filler.h"

#include <cmath>

#include "base/other_names.h"
#include "base/registry.h"
#include "kernels/pointwise/batch_values.h"
#include "layers/layer_types.h"
#include "proto/filler.pb.h"

namespace crema {
namespace {

// A filler's input and output: the shape, the random stream, and the values to write in row-major
// order: those from `first` on.
struct Filling {
  const FillerParameter& filler;
  const Random& random;
  const Shape& shape;
  int64_t first;
  std::vector<float>& values;

  int64_t count() const { return static_cast<int64_t>(values.size()); }

  // values[i] = value(first + i) on all threads: each value depends only on its index.
  template <typename Value>
  void each(const Value& value) const {
#pragma omp parallel for if (count() > 4096)
    for (int64_t i = 0; i < count(); ++i) values[i] = value(first + i);
  }
};

void fill_constant(const Filling& f) {
  f.each([&](int64_t) { return f.filler.value(); });
}

void fill_uniform(const Filling& f, float minimum, float maximum) {
  require(minimum <= maximum, "filler \"", f.filler.type(), "\": min ", minimum, " is above max ",
          maximum);
  f.each([&](int64_t i) { return minimum + (maximum - minimum) * f.random.uniform(i); });
}

void fill_normal(const Filling& f, float mean, float deviation) {
  require(deviation >= 0, "filler \"", f.filler.type(), "\": std ", deviation, " is negative");
  f.each([&](int64_t i) { return mean + deviation * f.random.normal(i); });
}

// sparse: keeps each value with probability sparse / outputs, so that a unit keeps about `sparse`
// inputs when there are as many inputs as outputs (Caffe's rule).
void fill_gaussian(const Filling& f) {
  fill_normal(f, f.filler.mean(), f.filler.std());
  const int sparse = f.filler.sparse();
  if (sparse < 0) return;
  require(f.shape.axes() >= 1,
          "filler \"gaussian\" with `sparse` needs a blob with an axis, this one is a scalar");
  const float kept = static_cast<float>(sparse) / static_cast<float>(f.shape[0]);
  const Random mask{f.random.seed, mix(f.random.stream, 1)};
  f.each([&](int64_t i) { return mask.uniform(i) < kept ? f.values[i - f.first] : 0.0f; });
}

// Every row (the weights of one output) has positive values that sum to 1.
void fill_positive_unitball(const Filling& f) {
  fill_uniform(f, 0, 1);
  if (f.count() == 0) return;
  const int64_t length = f.shape.axes() > 0 ? f.shape.count(1) : 1, rows = f.count() / length;
  for (int64_t row = 0; row < rows; ++row) {
    float* values = f.values.data() + row * length;
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += values[i];
    for (int64_t i = 0; i < length; ++i) values[i] = static_cast<float>(values[i] / sum);
  }
}

// Connections of a unit, counted as `variance_norm` says.
double fan(const Filling& f) {
  const double inputs = f.shape.axes() > 0 ? static_cast<double>(f.shape.count(1)) : 1;
  const double outputs =
      f.shape.axes() > 1 ? static_cast<double>(f.shape.count()) / static_cast<double>(f.shape[1])
                         : static_cast<double>(f.shape.count());
  switch (f.filler.variance_norm()) {
    case FillerParameter::FAN_OUT:
      return outputs;
    case FillerParameter::AVERAGE:
      return (inputs + outputs) / 2;
    default:
      return inputs;
  }
}

// U(-s, s) with s = sqrt(3 / n): variance 1/n.
void fill_xavier(const Filling& f) {
  const float bound = static_cast<float>(std::sqrt(3 / fan(f)));
  fill_uniform(f, -bound, bound);
}

// N(0, 2/n): keeps the variance through a ReLU.
void fill_msra(const Filling& f) { fill_normal(f, 0, static_cast<float>(std::sqrt(2 / fan(f)))); }

// The tent function with which a Deconvolution interpolates: (1 - |x/f - c|) * (1 - |y/f - c|) with
// f = ceil(w/2), c = (w-1) / 2f.
void fill_bilinear(const Filling& f) {
  require(f.shape.axes() == 4 && f.shape[2] == f.shape[3],
          "filler \"bilinear\" fills blobs of 4 axes with square kernels, this one is ",
          f.shape.brief());
  const int64_t side = f.shape[3];
  const double half = std::ceil(static_cast<double>(side) / 2),
               centre = static_cast<double>(side - 1) / (2 * half);
  const auto tent = [&](int64_t at) {
    return 1 - std::fabs(static_cast<double>(at) / half - centre);
  };
  f.each([&](int64_t i) { return static_cast<float>(tent(i % side) * tent(i / side % side)); });
}

// For square matrices over classes.
void fill_diagonal(const Filling& f) {
  const int axes = f.shape.axes(), given = f.filler.diagonal_size();
  require(axes >= 2 && f.shape[axes - 1] == f.shape[axes - 2],
          "filler \"diagonal\" fills square matrices, this blob is ", f.shape.brief());
  const int64_t side = f.shape[axes - 1];
  require(given == 1 || given == side, "filler \"diagonal\" has ", given,
          " values of `diagonal`; give one, or ", side, " for this blob, ", f.shape.brief());
  f.each([&](int64_t i) {
    const int64_t row = i / side % side;
    return row == i % side ? f.filler.diagonal(given == 1 ? 0 : static_cast<int>(row)) : 0;
  });
}

// As many outputs as there are inputs show one each, at the centre of the kernel; the others are
// uniform, as PyTorch initializes convolutions.
void fill_dirac(const Filling& f) {
  require(f.shape.axes() >= 3, "filler \"dirac\" fills the weights of convolutions, this blob is ",
          f.shape.brief());
  const int64_t inputs = f.shape[1], points = f.shape.count(2);
  int64_t centre = 0;
  for (int axis = 2; axis < f.shape.axes(); ++axis)
    centre = centre * f.shape[axis] + f.shape[axis] / 2;
  const float bound = static_cast<float>(1 / std::sqrt(static_cast<double>(f.shape.count(1))));
  f.each([&](int64_t i) {
    const int64_t output = i / (inputs * points), input = i / points % inputs;
    if (output >= inputs) return bound * (2 * f.random.uniform(i) - 1);
    return input == output && i % points == centre ? 1.0f : 0.0f;
  });
}

// Used until a training net has seen data (net/whitening.h): filters for data that are already
// white, one input each, and their negatives.
void fill_whitening(const Filling& f) {
  require(f.shape.axes() >= 2, "filler \"whitening\" fills weights, not biases");
  const int64_t inputs = f.shape.count(1), half = f.shape[0] / 2;
  require(f.shape[0] % 2 == 0 && half <= inputs,
          "filler \"whitening\" makes filters and their negatives, at most ", inputs,
          " of each here, but there are ", f.shape[0], " outputs");
  f.each([&](int64_t i) {
    const int64_t output = i / inputs, input = i % inputs;
    if (output < half) return output == input ? 1.0f : 0.0f;
    return output == half + input ? -1.0f : 0.0f;
  });
}

struct FillerTag {};
using FillerRegistry = Registry<FillerTag, void (*)(const Filling&)>;

[[maybe_unused]] const bool registered[] = {
    FillerRegistry::add("constant", fill_constant),
    FillerRegistry::add("uniform",
                        [](const Filling& f) { fill_uniform(f, f.filler.min(), f.filler.max()); }),
    FillerRegistry::add("gaussian", fill_gaussian),
    FillerRegistry::add("positive_unitball", fill_positive_unitball),
    FillerRegistry::add("xavier", fill_xavier),
    FillerRegistry::add("msra", fill_msra),
    FillerRegistry::add("bilinear", fill_bilinear),
    FillerRegistry::add("diagonal", fill_diagonal),
    FillerRegistry::add("dirac", fill_dirac),
    FillerRegistry::add("whitening", fill_whitening),
};

}  // namespace

std::vector<std::string> filler_types() { return FillerRegistry::names(); }

void check_filler(const FillerParameter& filler) {
  if (FillerRegistry::has(filler.type())) return;
  fail("unknown filler type \"", filler.type(), "\"",
       suggestion(Vocabulary::fillers, filler.type(), FillerRegistry::names()), "; there are ",
       join(FillerRegistry::names(), ", "));
}

void fill(Context& context, const FillerParameter& filler, const Random& random,
          const Tensor& tensor, const BatchShare& samples) {
  check_filler(filler);
  const auto* maker = FillerRegistry::find(filler.type());
  require(filler.sparse() == -1 || filler.type() == "gaussian", "filler \"", filler.type(),
          "\" cannot be sparse: only \"gaussian\" reads `sparse`");
  std::vector<float> values(tensor.count());
  Shape whole = tensor.shape();
  if (whole.axes() > 0) whole[0] = values_of_all(samples, whole[0]);
  (*maker)({filler, random, whole, values_before(samples, tensor.count()), values});
  from_floats(context, values.data(), tensor);
}

}  // namespace crema
