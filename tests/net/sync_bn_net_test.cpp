// A net with sync_bn on several ranks: the sum of their gradients is that of one rank with the
// whole batches.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/databases/database_writer.h"
#include "device/communicator.h"
#include "net/net.h"
#include "ranks.h"
#include "support.h"

namespace crema::tests {
namespace sync_bn_net_test {

constexpr int kBatch = 7;

std::string images(const Folder& folder) {
  const std::string path = folder.file("images");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  const Random random{5, 5};
  for (int i = 0; i < 3 * kBatch; ++i) {
    Datum datum;
    datum.set_channels(2), datum.set_height(5), datum.set_width(5);
    for (int k = 0; k < 50; ++k)
      datum.mutable_data()->push_back(static_cast<char>(random.word(50 * i + k)));
    datum.set_label(i * i % 3);
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  return path;
}

std::string net_of(const std::string& source, bool synchronizes) {
  const std::string bn = synchronizes ? "sync_bn: true" : "";
  return cat(R"(
    layer { name: "data" type: "Data" top: "x" top: "y" transform_param { scale: 0.01 }
      data_param { source: ")",
             source, R"(" batch_size: )", kBatch, R"( backend: LMDB } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "h" convolution_param { num_output: 4
      kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "norm" type: "BatchNorm" bottom: "h" top: "n" batch_norm_param { )",
             bn, R"( } }
    layer { name: "scale" type: "Scale" bottom: "n" top: "n" scale_param { bias_term: true } }
    layer { name: "relu" type: "ReLU" bottom: "n" top: "n" }
    layer { name: "ip1" type: "InnerProduct" bottom: "n" top: "a" inner_product_param { num_output: 6
      weight_filler { type: "xavier" } } }
    layer { name: "bn" type: "BN" bottom: "a" top: "b" bn_param { )",
             bn, R"( } }
    layer { name: "ip2" type: "InnerProduct" bottom: "b" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss" })");
}

struct Result {
  std::vector<std::vector<double>> diffs, measured;  // per parameter
};

// Three passes; the gradients of the last one.
Result run(const std::string& text, Communicator* world, bool fuses) {
  NetParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  Context context(Device::cpu);
  context.set_world(world);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.fuse = fuses;
  Net net(context, message, options);
  for (uint64_t pass = 0; pass < 3; ++pass) {
    net.forward(pass);
    net.backward();
  }
  Result result;
  for (const Parameter& parameter : net.parameters()) {
    (parameter.learned ? result.diffs : result.measured)
        .push_back(to_doubles(context, parameter.learned ? parameter.diff : parameter.data));
  }
  return result;
}

class SyncBnNet : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  // The largest differences of the gradients' sums, and of measured values, from those of one rank.
  std::pair<double, double> difference(bool synchronizes) {
    const auto [ranks, fuses] = GetParam();
    const std::string text = net_of(source_, synchronizes);
    const Result one = run(text, nullptr, fuses);
    std::vector<Result> all(ranks);
    ThreadRanks(ranks).run(
        [&](Communicator& world) { all[world.rank] = run(text, &world, std::get<1>(GetParam())); });
    double diffs = 0, measured = 0;
    for (size_t i = 0; i < one.diffs.size(); ++i) {
      for (size_t k = 0; k < one.diffs[i].size(); ++k) {
        double sum = 0;
        for (const Result& rank : all) sum += rank.diffs[i][k];
        diffs = std::max(diffs, std::abs(sum - one.diffs[i][k]));
      }
    }
    for (const Result& rank : all) {
      for (size_t i = 0; i < one.measured.size(); ++i) {
        for (size_t k = 0; k < one.measured[i].size(); ++k)
          measured = std::max(measured, std::abs(rank.measured[i][k] - one.measured[i][k]));
      }
      if (synchronizes) {
        EXPECT_EQ(rank.measured, all[0].measured);
      }
    }
    return {diffs, measured};
  }

  const Folder folder_;
  const std::string source_ = images(folder_);
};

TEST_P(SyncBnNet, GradientsAreThoseOfTheWholeBatch) {
  const auto [diffs, measured] = difference(true);
  EXPECT_LT(diffs, 1e-5);
  EXPECT_LT(measured, 1e-5);
  // Without it they are not.
  const auto [other_diffs, other_measured] = difference(false);
  EXPECT_GT(other_diffs, 1e-3);
  EXPECT_GT(other_measured, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(All, SyncBnNet, testing::Combine(testing::Values(2, 3), testing::Bool()));

}  // namespace sync_bn_net_test
}  // namespace crema::tests
