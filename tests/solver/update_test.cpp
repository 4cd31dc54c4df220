// Update rules: every rule against its formula in double precision, over several steps, segments
// and block borders.
#include "kernels/optim/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "proto/solver.pb.h"
#include "support.h"

namespace crema::tests {
namespace update_test {

UpdateArenas arenas_of(Context& context, const RuleTraits& rule, int64_t count, DType dtype) {
  const auto arena = [&] { return Tensor(context, Shape{count}, dtype); };
  UpdateArenas arenas;
  arenas.data = arena();
  arenas.diff = arena();
  for (int i = 0; i < rule.histories; ++i) arenas.history.push_back(arena());
  return arenas;
}

std::vector<double> normals(int64_t count, uint64_t stream) {
  const Random random{7, stream};
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

// One element by the formulas of update.h; LAMB and Muon are in update_norms_test.cpp.
struct Element {
  double w, h = 0, k = 0;
  void step(const RuleTraits& rule, const UpdateSettings& s, double diff, double lr_mult,
            double decay_mult) {
    const double penalty = static_cast<double>(s.at.penalty) * decay_mult,
                 rate = static_cast<double>(s.at.rate) * lr_mult;
    w -= rate * static_cast<double>(s.at.shrink) * decay_mult * w;
    const double g = s.scale * diff + penalty * (s.l1 ? (w > 0) - (w < 0) : w);
    const double m = s.at.momentum, m2 = s.momentum2, d = s.delta, r = s.rms_decay, old = h;
    const std::string name = rule.name;
    if (name == "SGD") {
      h = rate * g + m * h;
      w -= h;
    } else if (name == "Nesterov") {
      h = rate * g + m * h;
      w -= (1 + m) * h - m * old;
    } else if (name == "AdaGrad") {
      h += g * g;
      w -= rate * g / (std::sqrt(h) + d);
    } else if (name == "RMSProp") {
      h = r * h + (1 - r) * g * g;
      w -= rate * g / (std::sqrt(h) + d);
    } else if (name == "AdaDelta") {
      h = m * h + (1 - m) * g * g;
      const double u = g * std::sqrt((d + k) / (d + h));
      k = m * k + (1 - m) * u * u;
      w -= rate * u;
    } else if (name == "Adam" || name == "AdamW") {
      h = m * h + (1 - m) * g;
      k = m2 * k + (1 - m2) * g * g;
      w -= rate * s.at.correction * h / (std::sqrt(k) + d);
    } else if (name == "Lion") {
      const double u = m * h + (1 - m) * g;
      w -= rate * ((u > 0) - (u < 0));
      h = m2 * h + (1 - m2) * g;
    } else {
      FAIL() << "no formula for " << name;
    }
  }
};

// A new rule is among them without being named here.
std::vector<std::string> rules_of_elements() {
  std::vector<std::string> names;
  for (const RuleTraits& rule : update_rules()) {
    if (rule.scope == RuleTraits::Scope::element) names.emplace_back(rule.name);
  }
  return names;
}

class UpdateRules : public testing::TestWithParam<std::tuple<std::string, bool, DType, Device>> {};

TEST_P(UpdateRules, FollowTheFormulas) {
  const auto& [name, l1, dtype, device] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(device);
  const RuleTraits& rule = update_rule(name);
  const std::vector<Segment> segments = {
      {0, 1500, 1, 1}, {1504, 3, 2, 0}, {1520, 2048, 0.5, 3}, {3568, 100, 0, 1}};
  const int64_t count = 3700;
  const UpdateArenas arenas = arenas_of(context, rule, count, dtype);
  const std::vector<double> start = normals(count, 1);
  from_doubles(context, start.data(), arenas.data);
  const Update update(context, rule, segments);
  std::vector<Element> elements;
  for (double w : start) elements.push_back({w});
  UpdateSettings settings;
  settings.at = {0.1f, 1, 0.9f, 0.01f, 0.02f};
  settings.scale = 0.25f;
  settings.l1 = l1;
  settings.delta = 1e-3f;
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    settings.at.correction =
        bias_correction(rule, settings.at.momentum, settings.momentum2, iteration);
    const std::vector<double> diff = normals(count, 10 + iteration);
    from_doubles(context, diff.data(), arenas.diff);
    update.run(context, settings, arenas);
    EXPECT_NEAR(to_doubles(context, arenas.diff)[5], diff[5], 1e-6);  // read, not cleared
    for (const Segment& s : segments) {
      if (s.lr_mult == 0) continue;
      for (int64_t i = s.offset; i < s.offset + s.count; ++i) {
        elements[i].step(rule, settings, diff[i], s.lr_mult, s.decay_mult);
      }
    }
  }
  const std::vector<double> after = to_doubles(context, arenas.data);
  const double tolerance = dtype == DType::f64 ? 1e-12 : 3e-5;  // constants are float in both
  for (int64_t i = 0; i < count; ++i)
    ASSERT_NEAR(after[i], elements[i].w, tolerance) << name << ", element " << i;
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRules,
                         testing::Combine(testing::ValuesIn(rules_of_elements()), testing::Bool(),
                                          testing::Values(DType::f32, DType::f64),
                                          testing::Values(Device::cpu, Device::gpu)));

class AmsGrad : public testing::TestWithParam<Device> {};

// Gradients 1, 0, 0: the second moment stays what it is after the first one, 1/4. Without `divides`
// a step is the first moment.
TEST_P(AmsGrad, KeepsTheSecondMoment) {
  if (GetParam() == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(GetParam());
  const UpdateArenas arenas = arenas_of(context, update_rule("Adam"), 32, DType::f64);
  const Update update(context, update_rule("Adam"), {{0, 32}});
  UpdateSettings settings;
  settings.at = {0.1f, 1, 0.5f, 0, 0};
  settings.momentum2 = 0.75f;
  settings.delta = 0;
  settings.amsgrad = true;
  double moment = 0, weight = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    const double gradient = iteration == 0 ? 1 : 0;
    from_doubles(context, std::vector<double>(32, gradient).data(), arenas.diff);
    settings.at.divides = iteration < 3;
    update.run(context, settings, arenas);
    moment = 0.5 * moment + 0.5 * gradient;
    weight -= settings.at.rate * moment / (settings.at.divides ? 0.5 : 1);
  }
  for (const double w : to_doubles(context, arenas.data)) EXPECT_NEAR(w, weight, 1e-12);
  EXPECT_NEAR(to_doubles(context, arenas.history[1])[0], 0.25, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, AmsGrad, testing::Values(Device::cpu, Device::gpu));

class UpdateVariants : public testing::TestWithParam<std::tuple<DType, Device>> {};

// AdaBelief (Zhuang et al., 2020) with Lookahead (Zhang et al., 2019): every third update.
TEST_P(UpdateVariants, BeliefAndSlowWeights) {
  const auto& [dtype, device] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(device);
  const int64_t count = 2500;
  UpdateArenas arenas = arenas_of(context, update_rule("Adam"), count, dtype);
  arenas.slow = Tensor(context, Shape{count}, dtype);
  std::vector<double> w = normals(count, 1), slow = w, h(count), k(count);
  from_doubles(context, w.data(), arenas.data);
  from_doubles(context, w.data(), arenas.slow);
  const Update update(context, update_rule("Adam"), {{0, 1500}, {1504, 900}});
  UpdateSettings settings;
  settings.at = {0.1f, 1, 0.9f, 0.01f, 0};
  settings.delta = 1e-3f;
  settings.belief = true;
  settings.slow_length = 0.25f;
  settings.slow_every = 3;
  for (settings.iteration = 0; settings.iteration < 7; ++settings.iteration) {
    settings.at.correction = bias_correction(update_rule("Adam"), settings.at.momentum,
                                             settings.momentum2, settings.iteration);
    const std::vector<double> diff = normals(count, 10 + settings.iteration);
    from_doubles(context, diff.data(), arenas.diff);
    update.run(context, settings, arenas);
    const double m = settings.at.momentum, m2 = settings.momentum2, delta = settings.delta;
    for (int64_t i = 0; i < count; ++i) {
      if (i >= 2404 || (i >= 1500 && i < 1504)) continue;
      const double g = diff[i] + static_cast<double>(settings.at.penalty) * w[i];
      h[i] = m * h[i] + (1 - m) * g;
      k[i] = m2 * k[i] + (1 - m2) * (g - h[i]) * (g - h[i]) + delta;
      w[i] -= static_cast<double>(settings.at.rate) * settings.at.correction * h[i] /
              (std::sqrt(k[i]) + delta);
      if (settings.iteration % 3 == 2) w[i] = slow[i] += 0.25 * (w[i] - slow[i]);
    }
  }
  const std::vector<double> after = to_doubles(context, arenas.data),
                            slow_after = to_doubles(context, arenas.slow);
  const double tolerance = dtype == DType::f64 ? 1e-12 : 3e-5;
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_NEAR(after[i], w[i], tolerance) << i;
    ASSERT_NEAR(slow_after[i], slow[i], tolerance) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, UpdateVariants,
                         testing::Combine(testing::Values(DType::f32, DType::f64),
                                          testing::Values(Device::cpu, Device::gpu)));

TEST(Update, ZeroOverZeroLeavesTheWeight) {
  Context context(Device::cpu);
  for (const char* name : {"AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW", "LAMB", "Lion"}) {
    const UpdateArenas arenas = arenas_of(context, update_rule(name), 32, DType::f32);
    UpdateSettings settings;
    settings.at.rate = 1;
    settings.delta = 0;
    Update(context, update_rule(name), {{0, 32}}).run(context, settings, arenas);
    for (float w : to_floats(context, arenas.data)) EXPECT_EQ(w, 0) << name;
  }
}

class UpdateNorm : public testing::TestWithParam<Device> {};

TEST_P(UpdateNorm, CountsEverySegmentOnce) {
  if (GetParam() == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(GetParam());
  const int64_t count = 5000;
  Tensor diff(context, Shape{count}, DType::f32);
  const std::vector<double> values = normals(count, 3);
  from_doubles(context, values.data(), diff);
  const Update update(context, update_rule("SGD"), {{0, 2500}, {2512, 17}, {2600, 2000, 0, 1}});
  double wanted = 0;
  for (int64_t i = 0; i < 2529; ++i) {
    if (i < 2500 || i >= 2512) wanted += values[i] * values[i];
  }
  EXPECT_NEAR(update.squared_norm(context, diff), wanted, 1e-6 * wanted);
}

INSTANTIATE_TEST_SUITE_P(All, UpdateNorm, testing::Values(Device::cpu, Device::gpu));

TEST(Update, UnknownRule) {
  expect_part(error_of([] { update_rule("AdaGard"); }), "did you mean \"AdaGrad\"?");
  expect_part(error_of([] { update_rule("optim.NAdam"); }), "did you mean \"Adam\"?");
}

TEST(RuleTraits, RowsAreComplete) {
  std::set<std::string> names;
  for (const RuleTraits& rule : update_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_EQ(&update_rule(rule.name), &rule);
    EXPECT_GE(rule.histories, 1);
    EXPECT_LE(rule.histories, 2) << "RuleOperands has h and k";
    EXPECT_LT(rule.least_rate, rule.most_rate) << rule.name;
    EXPECT_STRNE(rule.usual_rates, "") << rule.name;
    EXPECT_STRNE(rule.history, "") << rule.name;
    for (const auto& fields : {rule.fields, rule.own_fields}) {
      for (const std::string& field : fields)
        EXPECT_NE(SolverParameter::descriptor()->FindFieldByName(field), nullptr) << field;
    }
  }
}

}  // namespace update_test
}  // namespace crema::tests
