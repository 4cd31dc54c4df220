// An iteration by itself, without a solver: what it does in which order, and that it is the passes and
// the update that it stands for.
#include "solver/iteration/iteration.h"

#include <gtest/gtest.h>

#include "fixtures.h"

namespace crema::tests {
namespace iteration_test {

constexpr int kBatches = 2;

struct Training {
  explicit Training(const std::string& more)
      : file(solver_file(cat("iter_size: ", kBatches, " momentum: 0.9 ", more))) {
    context.seed = 5;
    NetOptions options;
    options.state.set_phase(TRAIN);
    net.emplace(context, parse_net_text(kNet, "net.prototxt").net, options);
    optimizer.emplace(file.solver, *net);
    rates.emplace(file.solver);
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter& parameter : net->parameters()) {
      const std::vector<float> values = to_floats(context, parameter.data);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Context context{Device::cpu};
  SolverFile file;
  std::optional<Net> net;
  std::optional<Optimizer> optimizer;
  std::optional<Rates> rates;
};

TEST(Iteration, IsPassesAndAnUpdate) {
  Training one("clip_gradients: 0.1"), other("clip_gradients: 0.1");
  const auto iteration = make_iteration({*one.net, *one.optimizer, *one.rates, kBatches}, 1, true);
  EXPECT_TRUE(iteration->knows_losses());
  EXPECT_EQ(iteration->loss_scale(), 1);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(iteration->at_once(i), 1);
    const auto pass = static_cast<uint64_t>(i * kBatches);
    iteration->begin({i, pass});
    const std::vector<float> before = one.weights();
    EXPECT_EQ(before, other.weights()) << "begin() has changed weights";
    const auto clipped = iteration->end(i, one.rates->advance(i), true);

    double loss = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      other.net->forward(pass + static_cast<uint64_t>(batch));
      other.net->backward(batch > 0);
      loss += other.net->loss();
    }
    const auto expected = other.optimizer->update(other.rates->advance(i), i);
    EXPECT_EQ(iteration->losses(i, i), std::vector<double>{loss / kBatches});
    ASSERT_EQ(clipped.has_value(), expected.has_value());
    if (clipped) {
      EXPECT_EQ(clipped->norm, expected->norm);
    }
    EXPECT_EQ(one.weights(), other.weights()) << "iteration " << i;
    EXPECT_NE(one.weights(), before);
  }
}

TEST(Iteration, CallsInOrder) {
  Training training("");
  std::vector<std::string> calls;
  Iteration::Parts parts{*training.net, *training.optimizer, *training.rates, kBatches};
  parts.after_forward = [&] { calls.emplace_back("forward"); };
  parts.after_backward = [&] { calls.emplace_back("backward"); };
  parts.watch_forward = [&](int64_t iteration, uint64_t pass) {
    calls.push_back(cat("watched ", iteration, " ", pass));
    training.net->forward(pass);
  };
  const auto iteration = make_iteration(parts, 1, true);
  iteration->begin({.iteration = 3, .pass = 6, .watched = true});
  EXPECT_EQ(calls, (std::vector<std::string>{"watched 3 6", "forward", "backward", "forward",
                                             "backward"}));
}

}  // namespace iteration_test
}  // namespace crema::tests
