// Updates that use whole blobs: rates and clipping from norms, LAMB, Muon's orthogonal steps; the
// average of the weights. Against formulas in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "kernels/optim/update.h"
#include "support.h"

namespace crema::tests {
namespace update_norms_test {

using Numbers = std::vector<double>;

Numbers normals(int64_t count, uint64_t stream) {
  const Random random{7, stream};
  Numbers values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

double norm(const Numbers& values, const Segment& s) {
  double sum = 0;
  for (int64_t i = s.offset; i < s.offset + s.count; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

// A 30x50 matrix, its bias, a 60x20 matrix in blocks of several layers, and one that stays.
const std::vector<Segment>& segments() {
  static const std::vector<Segment> all = {{0, 1500, 1, 1, 0, Shape{30, 50}},
                                           {1504, 30, 2, 0, 0, Shape{30}},
                                           {1536, 1200, 0.5f, 2, 1, Shape{60, 5, 4}},
                                           {2736, 100, 0, 1, 2, Shape{10, 10}}};
  return all;
}
constexpr int64_t kCount = 2900;

class Blobs : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam() == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    context.emplace(GetParam());
    w = normals(kCount, 1);
    g = normals(kCount, 2);
    h.assign(kCount, 0);
    k.assign(kCount, 0);
    settings.at = {0.1f, 1, 0.9f, 0.01f, 0};
    settings.batches = 4;
    settings.scale = 0.25f;
  }

  void load(const RuleTraits& rule) {
    const auto arena = [&](const Numbers& values) {
      Tensor tensor(*context, Shape{kCount}, DType::f64);
      from_doubles(*context, values.data(), tensor);
      return tensor;
    };
    arenas = {arena(w), arena(g), {arena(h)}, {}, {}, {}};
    if (rule.histories > 1) arenas.history.push_back(arena(k));
  }
  void expect_weights(const Numbers& wanted, double tolerance = 1e-7) {
    const Numbers got = to_doubles(*context, arenas.data);
    for (int64_t i = 0; i < kCount; ++i) ASSERT_NEAR(got[i], wanted[i], tolerance) << i;
  }
  // SGD by hand with a factor on the gradient and a rate for each segment.
  void expect_sgd(const FactorRules& rules,
                  const std::function<std::pair<double, double>(const Segment&)>& factor) {
    load(update_rule("SGD"));
    const Update update(*context, update_rule("SGD"), segments(), rules);
    update.run(*context, settings, arenas);
    Numbers wanted = w;
    for (const Segment& s : segments()) {
      if (s.lr_mult == 0) continue;
      const auto [scale, rate] = factor(s);
      const double decay = static_cast<double>(settings.at.penalty) * s.decay_mult;
      for (int64_t i = s.offset; i < s.offset + s.count; ++i) {
        const double now =
            rate * (scale * 0.25 * g[i] + decay * w[i]) + settings.at.momentum * h[i];
        wanted[i] -= now;
      }
    }
    expect_weights(wanted);
  }

  std::optional<Context> context;
  Numbers w, g, h, k;
  UpdateSettings settings;
  UpdateArenas arenas;
};

TEST_P(Blobs, RatesFromNorms) {
  FactorRules rules;
  rules.rates = FactorRules::Rates::larc;
  rules.eta = 0.02f;
  const auto larc = [&](const Segment& s) {
    return (1 - settings.at.momentum) * rules.eta * norm(w, s) / (0.25 * norm(g, s));
  };
  expect_sgd(rules, [&](const Segment& s) { return std::pair(1.0, 0.1f * larc(s)); });
  rules.clip_rate = true;
  rules.eta = 0.25f;  // about the rate
  expect_sgd(rules,
             [&](const Segment& s) { return std::pair(1.0, std::min<double>(0.1f, larc(s))); });
  rules.clip_rate = false;
  rules.rates = FactorRules::Rates::lars;
  expect_sgd(rules, [&](const Segment& s) {
    const double ratio = rules.eta * norm(w, s) / (0.25 * norm(g, s) + 0.01f * norm(w, s));
    return std::pair(1.0, 0.1f * ratio);
  });
}

TEST_P(Blobs, TurboRemembersTheAngle) {
  h = normals(kCount, 3);
  FactorRules rules;
  rules.rates = FactorRules::Rates::larc;
  rules.turbo = true;
  expect_sgd(rules, [&](const Segment& s) {
    double dot = 0;
    for (int64_t i = s.offset; i < s.offset + s.count; ++i) dot += g[i] * h[i];
    const double c = 0.05 * dot / (norm(g, s) * norm(h, s));
    const double ratio = (1 - settings.at.momentum) * rules.eta * norm(w, s) / (0.25 * norm(g, s));
    return std::pair(1.0, 0.1f * ratio * (1 - 0.9 * c));
  });
}

TEST_P(Blobs, ClippingByBlobAndLayer) {
  FactorRules rules;
  rules.clip_blob = 10;
  const auto rate = [](const Segment& s) { return 0.1f * s.lr_mult; };
  const auto within = [](double size, double limit) { return size > limit ? limit / size : 1; };
  expect_sgd(rules, [&](const Segment& s) { return std::pair(within(norm(g, s), 10), rate(s)); });
  rules.clip_layer = 20;
  expect_sgd(rules, [&](const Segment& s) {
    double all = 0;
    for (const Segment& other : segments())
      if (other.layer == s.layer) all += std::pow(norm(g, other), 2);
    const double layer = within(std::sqrt(all), 20);
    return std::pair(layer * within(layer * norm(g, s), 10), rate(s));
  });
}

TEST_P(Blobs, ClippingByValue) {
  settings.limit = 0.1f;
  for (double& value : g) value = std::clamp(value, -0.4, 0.4);
  expect_sgd({}, [](const Segment& s) { return std::pair(1.0, 0.1f * s.lr_mult); });
  for (double& value : g) value = value > 0.3 ? 7 : value;  // above the limit: as the limit
  const Numbers large = g;
  for (double& value : g) value = value == 7 ? static_cast<double>(settings.limit) * 4 : value;
  load(update_rule("SGD"));
  const Update update(*context, update_rule("SGD"), segments());
  update.run(*context, settings, arenas);
  const Numbers wanted = to_doubles(*context, arenas.data);
  g = large;
  load(update_rule("SGD"));
  update.run(*context, settings, arenas);
  expect_weights(wanted);
}

TEST_P(Blobs, Lamb) {
  load(update_rule("LAMB"));
  settings.at = {0.1f, 0.5f, 0.9f, 0, 0.02f};
  settings.delta = 1e-3f;
  const Update update(*context, update_rule("LAMB"), segments());
  for (int repeat = 0; repeat < 3; ++repeat) {
    update.run(*context, settings, arenas);
    for (const Segment& s : segments()) {
      if (s.lr_mult == 0) continue;
      Numbers u(kCount);
      const double m = settings.at.momentum, m2 = settings.momentum2, d = settings.delta;
      for (int64_t i = s.offset; i < s.offset + s.count; ++i) {
        h[i] = m * h[i] + (1 - m) * 0.25 * g[i];
        k[i] = m2 * k[i] + (1 - m2) * 0.0625 * g[i] * g[i];
        u[i] = 0.5 * h[i] / (std::sqrt(k[i]) + d) + 0.02f * s.decay_mult * w[i];
      }
      const double rate = 0.1f * s.lr_mult * norm(w, s) / norm(u, s);
      for (int64_t i = s.offset; i < s.offset + s.count; ++i) w[i] -= rate * u[i];
    }
    expect_weights(w, 1e-6);
  }
}

// c = a * b, or a * b^T.
Numbers product(const Numbers& a, const Numbers& b, int64_t m, int64_t n, int64_t depth,
                bool transposed = false) {
  Numbers c(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t t = 0; t < depth; ++t)
        c[i * n + j] += a[i * depth + t] * (transposed ? b[j * depth + t] : b[t * n + j]);
  return c;
}

Numbers orthogonal(Numbers x, int64_t rows, int64_t columns, const MuonOptions& options) {
  double sum = 0;
  for (double value : x) sum += value * value;
  for (double& value : x) value /= std::sqrt(sum) + 1e-7;
  for (int i = 0; i < options.steps; ++i) {
    const Numbers a = product(x, x, rows, rows, columns, true),
                  aa = product(a, a, rows, rows, rows);
    Numbers p(a.size());
    for (size_t j = 0; j < p.size(); ++j) p[j] = -4.775f * a[j] + 2.0315f * aa[j];
    const Numbers px = product(p, x, rows, columns, rows);
    for (size_t j = 0; j < x.size(); ++j) x[j] = 3.4445f * x[j] + px[j];
  }
  const auto larger = static_cast<double>(std::max(rows, columns));
  for (double& value : x) value *= options.adam_scale ? 0.2 * std::sqrt(larger) : 1;
  return x;
}

// Muon's options; the first is its default. With a limit on blobs, which both read.
const std::pair<MuonOptions, float> kMuons[] = {
    {{}, -1},
    {{.steps = 2, .adam_scale = false}, -1},
    {{.normalizes = true}, -1},
    {{.nesterov_others = true}, -1},
    {{.steps = 3, .adam_scale = false, .normalizes = true, .nesterov_others = true}, 10},
};

TEST_P(Blobs, Muon) {
  for (const auto& [options, limit] : kMuons) {
    SetUp();
    load(update_rule("Muon"));
    settings.at = {0.1f, 0.5f, 0.9f, 0, 0.02f, true, 0.7f};
    std::vector<Segment> all = segments();
    all.push_back({2840, 60, 3, 1, 3, Shape{6, 10}, {}, false, true});  // a matrix like a vector
    FactorRules rules;
    rules.clip_blob = limit;
    const Update update(*context, update_rule("Muon"), all, rules, DType::f64, options);
    for (int repeat = 0; repeat < 2; ++repeat) {
      update.run(*context, settings, arenas);
      for (const Segment& s : all) {
        if (s.lr_mult == 0) continue;
        const double rate = 0.1f * s.lr_mult, m = 0.9f, others = 0.7f;
        const bool matrix = s.shape.axes() > 1 && !s.vector;
        const double size = norm(g, s), within = limit > 0 && size > limit ? limit / size : 1;
        Numbers u(s.count);
        for (int64_t at = 0; at < s.count; ++at) {
          const int64_t i = s.offset + at;
          const double diff = within * 0.25 * g[i], old = h[i];
          if (matrix) {
            h[i] = m * h[i] + diff;
            u[at] = diff + m * h[i];
          } else if (options.nesterov_others) {
            h[i] = rate * diff + others * h[i];
            u[at] = ((1 + others) * h[i] - others * old) / rate;
          } else {
            h[i] = others * h[i] + (1 - others) * diff;
            k[i] = settings.momentum2 * k[i] + (1 - settings.momentum2) * diff * diff;
            u[at] = 0.5 * h[i] / (std::sqrt(k[i]) + settings.delta);
          }
        }
        const int64_t rows = s.shape[0];
        if (matrix) u = orthogonal(u, rows, s.count / rows, options);
        const double weight = matrix && options.normalizes ? std::sqrt(rows) / norm(w, s) : 1;
        for (int64_t at = 0; at < s.count; ++at) {
          const int64_t i = s.offset + at;
          w[i] *= (1 - rate * 0.02f * s.decay_mult) * weight;
          w[i] -= rate * u[at];
        }
      }
      expect_weights(w, 1e-6);
    }
  }
}

TEST_P(Blobs, AverageOfTheWeights) {
  load(update_rule("SGD"));
  arenas.average = Tensor(*context, Shape{kCount}, DType::f64);
  copy(*context, arenas.data, arenas.average);
  settings.keep = 0.75f;
  const Update update(*context, update_rule("SGD"), segments());
  Numbers average = w;
  for (int repeat = 0; repeat < 3; ++repeat) {
    update.run(*context, settings, arenas);
    const Numbers now = to_doubles(*context, arenas.data);
    for (int64_t i = 0; i < kCount; ++i) average[i] = 0.75 * average[i] + 0.25 * now[i];
  }
  const Numbers weights = to_doubles(*context, arenas.data);
  for (const Segment& s : segments()) {
    if (s.lr_mult == 0) continue;
    EXPECT_NEAR(to_doubles(*context, arenas.average)[s.offset], average[s.offset], 1e-12);
  }
  update.exchange(*context, arenas.data, arenas.average);
  EXPECT_NEAR(to_doubles(*context, arenas.data)[0], average[0], 1e-12);
  EXPECT_EQ(to_doubles(*context, arenas.average)[0], weights[0]);
  update.exchange(*context, arenas.data, arenas.average);
  EXPECT_EQ(to_doubles(*context, arenas.data), weights);
}

INSTANTIATE_TEST_SUITE_P(All, Blobs, testing::Values(Device::cpu, Device::gpu));

}  // namespace update_norms_test
}  // namespace crema::tests
