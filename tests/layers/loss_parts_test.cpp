// If ranks share a batch, each computes the loss of its part: every loss declares how these and
// their gradients combine to those of the whole batch (Layer::loss_parts). A batch of 7 against its
// parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/optim/iteration.h"
#include "layers/loss_rows.h"
#include "ranks.h"

namespace crema::tests {
namespace loss_parts_test {

struct LossCase {
  const LossRow* row;
  std::string name, text;
};
void PrintTo(const LossCase& loss, std::ostream* out) { *out << loss.text; }

// Each row, and with each normalization that it takes, with and without an ignored label.
std::vector<LossCase> all_cases() {
  std::vector<LossCase> all;
  for (const LossRow& row : kLossRows) {
    const std::string text = cat("type: '", row.type, "' ", row.text);
    all.push_back({&row, row.name, text});
    if (row.takes == Takes::nothing) continue;
    const std::pair<const char*, const char*> modes[] = {
        {"FULL", "normalization: FULL"},
        {"VALID", "normalization: VALID"},
        {"BATCH_SIZE", "normalization: BATCH_SIZE"},
        {"NONE", "normalization: NONE"},
        {"PRE_FIXED", "normalization: PRE_FIXED pre_fixed_normalizer: 2.5"},
        {"normalized", "normalize: true"},
        {"unnormalized", "normalize: false"}};
    for (const auto& [mode, field] : modes) {
      const bool legacy = std::string(field).find("normalize:") == 0;
      if (legacy && std::string(row.type) == "InfogainLoss") continue;  // refuses the old field
      const std::string normalization = cat(" loss_param { ", field);
      all.push_back({&row, cat(row.name, "_", mode), cat(text, normalization, " }")});
      if (row.takes != Takes::ignore_label) continue;
      all.push_back({&row, cat(row.name, "_", mode, "_ignore"),
                     cat(text, normalization, " ignore_label: 1 }")});
    }
  }
  return all;
}

std::vector<double> part_of(const std::vector<double>& whole, const Shape& shape, int axis,
                            const BatchShare& samples) {
  if (axis == kWhole) return whole;
  std::vector<double> part;
  if (axis == kObjects) {
    const auto rows = static_cast<int64_t>(whole.size()) / 8;
    for (int64_t row = 0; row < rows; ++row) {
      const auto image = static_cast<int64_t>(whole[row * 8]) - samples.first;
      if (image < 0 || image >= samples.count) continue;
      part.push_back(static_cast<double>(image));
      part.insert(part.end(), whole.begin() + row * 8 + 1, whole.begin() + row * 8 + 8);
    }
    part.resize(whole.size(), -1);
    return part;
  }
  const int64_t inner = shape.count(axis + 1), outer = shape.count(0, axis);
  for (int64_t i = 0; i < outer; ++i) {
    const auto begin = whole.begin() + (i * shape[axis] + samples.first) * inner;
    part.insert(part.end(), begin, begin + samples.count * inner);
  }
  return part;
}

struct Result {
  std::vector<double> loss, gradient;
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / (1 + std::abs(a[i])));
  return largest;
}

// The change of a parameter: its gradient, or the layer's own update of centres.
std::vector<double> change_of(const LossRow& row, const Outcome& outcome, const Start& start,
                              size_t parameter) {
  if (std::string(row.name) != "CenterThatMoves") return outcome.parameter_diff[parameter];
  std::vector<double> change = outcome.parameter_after[parameter];
  for (size_t i = 0; i < change.size(); ++i) change[i] -= start.parameter[parameter][i];
  return change;
}

class LossParts : public testing::TestWithParam<LossCase> {
 protected:
  const LossCase& loss() const { return GetParam(); }
  int axis(size_t bottom) const {
    return bottom < loss().row->axes.size() ? loss().row->axes[bottom] : 0;
  }
  Row row() const { return row_of(loss().text, loss().row->bottoms); }

  static BatchShare samples_of(int rank, int ranks) {
    OnlyRank world(rank, ranks);
    world.divides_batches = true;
    return world.share_of(kBatch);
  }
  static double count_of(LayerRun& part, size_t value) {
    return to_doubles(part.context(),
                      part.layer().loss_count(part.forward_arguments().saved))[value];
  }

  // between: called after its forward.
  template <typename Between>
  Outcome run_part(int rank, int ranks, const Row& row, const Start& start,
                   const Between& between) const {
    OnlyRank world(rank, ranks);
    world.divides_batches = true;
    const BatchShare samples = samples_of(rank, ranks);
    Row of_part = row;
    Start own = start;
    for (size_t j = 0; j < row.bottoms.size(); ++j) {
      if (axis(j) >= 0) of_part.bottoms[j].shape[axis(j)] = samples.count;
      own.bottom[j] = part_of(start.bottom[j], row.bottoms[j].shape, axis(j), samples);
    }
    LayerRun part(of_part, {});
    part.context().set_world(&world);
    part.set_samples(samples);
    const Outcome outcome = part.backward(own, 1, [&] { between(part); });
    part.context().set_world(nullptr);
    return outcome;
  }

  // The whole batch, and the combined parts of several ranks.
  void compute(int ranks, PartsRule loss_rule, PartsRule gradient_rule, Result* want,
               Result* got) const {
    const Row row = this->row();
    LayerRun whole(row, {});
    const Start start = whole.make_start();
    const Outcome expected = whole.backward(start);
    *want = {{expected.top[0]}, {}};
    *got = {std::vector<double>(expected.top[0].size()), {}};
    std::vector<std::vector<double>> wanted, parameters;
    for (size_t k = 0; k < expected.parameter_diff.size(); ++k) {
      wanted.push_back(change_of(*loss().row, expected, start, k));
      parameters.emplace_back(wanted.back().size());
    }
    double all = 0;  // that the ranks count
    for (int rank = 0; rank < ranks && gradient_rule == PartsRule::counted; ++rank)
      run_part(rank, ranks, row, start, [&](LayerRun& part) { all += count_of(part, 1); });
    for (int rank = 0; rank < ranks; ++rank) {
      const BatchShare samples = samples_of(rank, ranks);
      const auto share = [&](PartsRule rule) {
        return rule == PartsRule::mean
                   ? static_cast<double>(samples.count) / static_cast<double>(kBatch)
                   : 1;
      };
      const Outcome outcome = run_part(rank, ranks, row, start, [&](LayerRun& part) {
        if (gradient_rule != PartsRule::counted) return;
        Context& context = part.context();
        Tensor total(context, Shape{1}, DType::f64);
        from_doubles(context, &all, total);
        divide_by_all(context, total, part.layer().loss_count(part.forward_arguments().saved),
                      part.forward_arguments().top[0]);
      });
      got->loss[0] += share(loss_rule) * outcome.top[0][0];
      const double of_gradient = share(gradient_rule);
      for (size_t j = 0; j < expected.bottom_diff.size(); ++j) {
        if (expected.bottom_diff[j].empty()) continue;
        const std::vector<double> slopes =
            part_of(expected.bottom_diff[j], row.bottoms[j].shape, axis(j), samples);
        want->gradient.insert(want->gradient.end(), slopes.begin(), slopes.end());
        for (const double slope : outcome.bottom_diff[j])
          got->gradient.push_back(of_gradient * slope);
      }
      for (size_t k = 0; k < parameters.size(); ++k) {
        const std::vector<double> change = change_of(*loss().row, outcome, start, k);
        for (size_t i = 0; i < change.size(); ++i) parameters[k][i] += of_gradient * change[i];
      }
    }
    if (std::string(loss().row->name) == "CenterWithFixedCentres") return;  // they do not learn
    for (size_t k = 0; k < parameters.size(); ++k) {
      want->gradient.insert(want->gradient.end(), wanted[k].begin(), wanted[k].end());
      got->gradient.insert(got->gradient.end(), parameters[k].begin(), parameters[k].end());
    }
  }

  double error(int ranks, PartsRule loss_rule, PartsRule gradient_rule) const {
    Result want, got;
    compute(ranks, loss_rule, gradient_rule, &want, &got);
    return std::max(distance(want.loss, got.loss), distance(want.gradient, got.gradient));
  }
};

TEST_P(LossParts, AreWhatTheLayerSays) {
  const Row row = this->row();
  const LayerRun run(row, {});
  std::vector<Shape> shapes;
  for (const RowBottom& bottom : row.bottoms) shapes.push_back(bottom.shape);
  const crema::LossParts parts = run.layer().loss_parts(shapes);
  if (parts.combine()) {
    for (const int ranks : {2, 3, 5})
      EXPECT_LT(error(ranks, parts.loss, parts.gradient), 1e-7) << ranks << " ranks";
    return;
  }
  ASSERT_NE(parts.why, nullptr) << "it does not say";
  for (const PartsRule loss : {PartsRule::mean, PartsRule::sum}) {
    for (const PartsRule gradient : {PartsRule::mean, PartsRule::sum})
      EXPECT_GT(error(3, loss, gradient), 1e-4) << parts.why;
  }
}

TEST(LossPartsTest, EveryLossHasARow) {
  std::set<std::string> tested;
  for (const LossRow& row : kLossRows) tested.insert(row.type);
  for (const std::string& type : LayerRegistry::names()) {
    if (std::string(LayerRegistry::find(type)->file).find("/shown_") != std::string::npos) continue;
    if (LayerRegistry::find(type)->make()->is_loss()) {
      EXPECT_TRUE(tested.count(type)) << type << " has no row";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LossParts, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace loss_parts_test
}  // namespace crema::tests
