// Every row of rows/*.rows: gradient by central differences, all orders, implementations and
// devices against one reference, in place against out of place, memory bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kernels/core/kernel_registry.h"
#include "layers/layer_run.h"

namespace crema {

void PrintTo(const Row& row, std::ostream* out) { *out << row.text; }

namespace rows_test {

class RowTest : public testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() {
    if (gpu_count() > 0) gpu_ = std::make_shared<Context>(Device::gpu);
  }
  static void TearDownTestSuite() { gpu_.reset(); }

  // All orders, dtypes, implementations and devices, in place too, against the float64 reference.
  static void check_variants(const Row& row, const Layer& layer, const Start& start,
                             const Outcome& reference);
  // On a GPU, in the precisions that training uses there.
  static void check_precisions(const Row& row, const Layer& layer, const Start& start);

  static std::shared_ptr<Context> gpu_;
};
std::shared_ptr<Context> RowTest::gpu_;

double largest(const std::vector<double>& values) {
  double maximum = 0;
  for (double value : values) maximum = std::max(maximum, std::fabs(value));
  return maximum;
}

// Every value within `tolerance` times the largest magnitude; NaN differs from everything.
testing::AssertionResult near(const std::vector<double>& want, const std::vector<double>& got,
                              double tolerance) {
  if (want.size() != got.size())
    return testing::AssertionFailure() << got.size() << " values instead of " << want.size();
  const double bound = tolerance * (largest(want) + 1e-3);
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::fabs(want[i] - got[i]) <= bound)) {
      return testing::AssertionFailure() << "value " << i << " is " << got[i] << " instead of "
                                         << want[i] << " (bound " << bound << ")";
    }
  }
  return testing::AssertionSuccess();
}

void expect_near(const std::vector<std::vector<double>>& want,
                 const std::vector<std::vector<double>>& got, double tolerance, const char* what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(near(want[i], got[i], tolerance)) << what << " " << i;
}

void expect_same(const Outcome& want, const Outcome& got, double tolerance) {
  expect_near(want.top, got.top, tolerance, "top");
  expect_near(want.parameter, got.parameter, tolerance, "parameter after forward");
  expect_near(want.bottom_diff, got.bottom_diff, tolerance, "bottom_diff");
  expect_near(want.parameter_diff, got.parameter_diff, tolerance, "parameter_diff");
  expect_near(want.parameter_after, got.parameter_after, tolerance, "parameter after backward");
}

void expect_finite(const std::vector<std::vector<double>>& blobs, const char* what) {
  for (size_t i = 0; i < blobs.size(); ++i) {
    for (size_t k = 0; k < blobs[i].size(); ++k) {
      ASSERT_TRUE(std::isfinite(blobs[i][k]))
          << what << " " << i << ": value " << k << " was not written, or is not finite";
    }
  }
}

Outcome run(LayerRun& layer_run, const Row& row, const Start& start) {
  const Outcome outcome = row.gradient ? layer_run.backward(start) : layer_run.forward(start);
  EXPECT_EQ(layer_run.broken_guard(), "");
  return outcome;
}

// Compares d(sum of top_diff * top) / d(value) by central differences with the gradient that
// backward gave. `values` is a part of `start`.
void check_slopes(LayerRun& layer_run, const Row& row, const Start& start,
                  std::vector<double>& values, const std::vector<double>& gradient,
                  const std::string& what) {
  const int64_t count = static_cast<int64_t>(values.size());
  // 200 values are enough, and fewer if a forward pass is long.
  const int64_t samples = std::clamp<int64_t>(400000 / (count + 1), 20, 200);
  const int64_t stride = std::max<int64_t>(1, count / samples);
  const double scale = std::max(1.0, largest(gradient));
  for (int64_t i = 0; i < count; i += stride) {
    const double value = values[i];
    values[i] = value + row.step;
    const Outcome above = layer_run.forward(start);
    values[i] = value - row.step;
    const Outcome below = layer_run.forward(start);
    values[i] = value;
    double slope = 0;
    for (size_t top = 0; top < start.top_diff.size(); ++top) {
      const size_t written = std::min(start.top_diff[top].size(), above.top[top].size());
      for (size_t k = 0; k < written; ++k) {
        slope += start.top_diff[top][k] * (above.top[top][k] - below.top[top][k]);
      }
    }
    slope /= 2 * row.step;
    ASSERT_NEAR(gradient[i], slope, row.gradient_tolerance * scale) << what << ", value " << i;
  }
}

void check_gradient(LayerRun& layer_run, const Row& row, Start start, const Outcome& outcome) {
  for (int bottom : layer_run.differentiable_bottoms()) {
    if (!row.bottom_slopes) continue;
    check_slopes(layer_run, row, start, start.bottom[bottom], outcome.bottom_diff[bottom],
                 cat("bottom ", bottom));
  }
  for (size_t i = 0; i < start.parameter.size(); ++i) {
    if (!layer_run.layer().parameters()[i].learned || !row.parameter_slopes) continue;
    check_slopes(layer_run, row, start, start.parameter[i], outcome.parameter_diff[i],
                 cat("parameter ", i));
  }
}

// A second backward adds to the parameter gradients.
void check_accumulation(LayerRun& layer_run, const Start& start, const Outcome& reference,
                        double tolerance) {
  SCOPED_TRACE("two backward passes, the second one accumulates");
  Outcome doubled = reference;
  for (std::vector<double>& diff : doubled.parameter_diff) {
    for (double& value : diff) value *= 2;
  }
  expect_same(doubled, layer_run.backward(start, 2), tolerance);
}

// Each gradient comes out the same when it is the only one that is wanted.
void check_requests(const Row& row, const Start& start, const Outcome& reference, uint32_t bottoms,
                    bool parameters) {
  Setting setting;
  setting.bottoms_wanted = bottoms;
  setting.parameters_wanted = parameters;
  SCOPED_TRACE(setting.str());
  Outcome wanted = reference;
  for (size_t i = 0; i < wanted.bottom_diff.size(); ++i) {
    if (!(bottoms >> i & 1)) wanted.bottom_diff[i].clear();
  }
  for (std::vector<double>& diff : wanted.parameter_diff) {
    if (!parameters) diff.clear();
  }
  LayerRun partial(row, setting);
  expect_same(wanted, run(partial, row, start), 1e-12);
}

// Whether a run with the implementation of this name would differ from the one that recorded `ran`.
bool changes_functions(const std::string& name, Device device,
                       const std::vector<const Implementation*>& ran) {
  const auto has_run = [&](const Implementation& one) {
    return std::count(ran.begin(), ran.end(), &one) > 0;
  };
  for (const Operation* operation : operations()) {
    bool used = false, other = false;
    for (const Implementation& one : *operation) {
      used = used || has_run(one);
      other = other || (one.name == name && one.runs_on(device) && !has_run(one));
    }
    if (used && other) return true;
  }
  return false;
}

void RowTest::check_variants(const Row& row, const Layer& layer, const Start& start,
                             const Outcome& reference) {
  std::vector<Order> orders = {Order::row_major};
  if (layer.traits().order_rule != OrderRule::row_major) orders.push_back(Order::channels_last);
  // "" lets each kernel decide. A name that no kernel of the layer knows changes nothing, and equal
  // choices are run once: those made beforehand, as the log says, and those of functions.
  std::vector<std::string> implementations = implementation_names();
  implementations.insert(implementations.begin(), "");
  std::vector<Device> devices = {Device::cpu};
  if (gpu_) devices.push_back(Device::gpu);
  for (Device device : devices) {
    for (Order order : orders) {
      for (DType dtype : {DType::f64, DType::f32}) {
        for (bool in_place : {false, true}) {
          if (in_place && !layer.traits().in_place) continue;
          std::set<std::string> chosen, names;
          for (const std::string& implementation : implementations) {
            Setting setting{device,         dtype,    Precision::fp32, order,
                            implementation, in_place, row.gradient};
            if (device == Device::gpu) setting.context = gpu_;
            SCOPED_TRACE(setting.str());
            LayerRun variant(row, setting);
            const bool first = chosen.empty();
            if (!chosen.insert(variant.chosen()).second && names.count(implementation) == 0)
              continue;
            SCOPED_TRACE(variant.chosen());
            const double tolerance = dtype == DType::f64 ? 1e-10 : row.tolerance;
            expect_same(reference, run(variant, row, start), tolerance);
            if (first) {
              for (const std::string& name : implementations) {
                if (changes_functions(name, device, variant.context().ran)) names.insert(name);
              }
            }
            if (!row.gradient || variant.gradient_parts() == 1) continue;
            setting.parts = true;
            SCOPED_TRACE("top gradient in parts");
            LayerRun in_parts(row, setting);
            expect_same(reference, run(in_parts, row, start), tolerance);
          }
        }
      }
    }
  }
}

// The values rounded to 16 bits: then the reference and the run start alike, and the sides of a
// ReLU or the winners of a maximum are the same.
Start rounded(const Start& start, DType type) {
  Start result = start;
  const auto round = [&](std::vector<std::vector<double>>& blobs) {
    for (std::vector<double>& blob : blobs) {
      for (double& value : blob) {
        const auto real = static_cast<float>(value);
        value = type == DType::f16 ? static_cast<float>(Half(real))
                                   : static_cast<float>(BFloat16(real));
      }
    }
  };
  round(result.bottom);
  round(result.parameter);
  round(result.top_diff);
  return result;
}

// "", which lets each kernel decide, then our products, of which the autotuner takes the fastest: a
// row would otherwise run one of them at most. The reference takes no 16 bits, and libraries would
// compile for seconds.
constexpr std::array kProducts = {"", "implicit_gemm", "small_gemm", "direct_conv"};

void RowTest::check_precisions(const Row& given, const Layer& layer, const Start& start) {
  if (!gpu_ || layer.traits().half_rule == HalfRule::never) return;
  Row row = given;
  if (given.rounding_decides) row.gradient = false;
  // The order that plans give such a layer there.
  const bool plain = layer.traits().order_rule == OrderRule::row_major;
  const Order order = plain ? Order::row_major : Order::channels_last;
  for (Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
    const DType storage = storage_of(precision, DType::f32);
    const Start begin = is_half(storage) ? rounded(start, storage) : start;
    Setting exact;
    exact.backward = row.gradient;
    LayerRun reference_run(row, exact);
    const Outcome reference = run(reference_run, row, begin);
    // Beyond float16's numbers: a maximum over nothing.
    const auto fits = [](const std::vector<double>& values) { return largest(values) < 65504; };
    if (!std::all_of(reference.top.begin(), reference.top.end(), fits)) continue;
    Setting setting;
    setting.device = Device::gpu;
    setting.context = gpu_;
    setting.dtype = DType::f32;
    setting.precision = precision;
    setting.order = order;
    setting.backward = row.gradient;
    const double tolerance = precision == Precision::bf16 ? 4e-2 : 1e-2;
    std::set<std::pair<std::string, bool>> chosen;
    const auto expect_variant = [&](const Outcome& wanted) {
      SCOPED_TRACE(setting.str());
      LayerRun variant(row, setting);
      // Equal choices are run once.
      if (!chosen.emplace(variant.chosen(), setting.padded).second) return;
      SCOPED_TRACE(variant.chosen());
      expect_same(wanted, run(variant, row, begin), std::max(tolerance, row.tolerance));
      if (!row.gradient) return;
      Setting in_any_order = setting;
      in_any_order.repeatable = false;
      LayerRun adding(row, in_any_order);
      if (adding.adds_gradients())
        check_accumulation(adding, begin, wanted, std::max(tolerance, row.tolerance));
      if (variant.gradient_parts() == 1) return;
      Setting with_parts = setting;
      with_parts.parts = true;
      SCOPED_TRACE("top gradient in parts");
      LayerRun in_parts(row, with_parts);
      expect_same(wanted, run(in_parts, row, begin), std::max(tolerance, row.tolerance));
    };
    Outcome without = reference;
    for (std::vector<double>& diff : without.bottom_diff) diff.clear();
    const bool pads = !plain && layer.padded_channels(storage) > 0 && row.bottoms.size() == 1;
    for (const char* const implementation : kProducts) {
      setting.implementation = implementation;
      setting.padded = false;
      setting.bottoms_wanted = ~0u;
      expect_variant(reference);
      if (pads) {
        setting.padded = true;
        setting.bottoms_wanted = 0;
        expect_variant(without);
      }
      if (chosen.begin()->first.empty()) break;  // no kernel was chosen beforehand
    }
  }
}

void check_error(const Row& row) {
  try {
    LayerRun failing(row, {});
    failing.forward(failing.make_start());
    FAIL() << "no error, although one with \"" << row.error << "\" is expected";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(row.error), std::string::npos) << error.what();
  }
}

TEST_P(RowTest, Works) {
  const Row& row = GetParam();
  if (!row.error.empty()) return check_error(row);
  Setting setting;
  setting.backward = row.gradient;
  LayerRun layer_run(row, setting);
  const Start start = layer_run.make_start();
  const Outcome reference = run(layer_run, row, start);
  expect_finite(reference.top, "top");
  expect_finite(reference.bottom_diff, "bottom_diff");
  expect_finite(reference.parameter_diff, "parameter_diff");
  if (!row.expected.empty())
    expect_near({row.expected}, {reference.top.at(0)}, 1e-6, "expected top");
  if (HasFailure()) return;
  if (row.gradient) {
    check_gradient(layer_run, row, start, reference);
    bool parameters = false;
    for (const ParameterSpec& spec : layer_run.layer().parameters())
      parameters = parameters || spec.learned;
    if (parameters && row.accumulation) {
      LayerRun twice(row, {});
      check_accumulation(twice, start, reference, 1e-12);
    }
    for (int bottom : layer_run.differentiable_bottoms())
      check_requests(row, start, reference, 1u << bottom, false);
    if (parameters) check_requests(row, start, reference, 0, true);
  }
  check_variants(row, layer_run.layer(), start, reference);
  check_precisions(row, layer_run.layer(), start);
}

// Including the rows in src/layers/README.md and fused/README.md.
std::vector<Row> all_rows() {
  std::vector<Row> rows = read_rows(CREMA_TEST_DATA "/layers/rows");
  const std::vector<Row> shown = read_rows(CREMA_SHOWN_ROWS);
  rows.insert(rows.end(), shown.begin(), shown.end());
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Rows, RowTest, testing::ValuesIn(all_rows()),
                         [](const testing::TestParamInfo<Row>& info) { return info.param.id(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowTest);

}  // namespace rows_test
}  // namespace crema
