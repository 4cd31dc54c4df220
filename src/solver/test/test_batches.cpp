#include "solver/test/test_batches.h"

#include <algorithm>

#include "device/communicator.h"
#include "proto/layer.pb.h"
#include "proto/params/forks_detection.pb.h"
#include "proto/params/normalization.pb.h"
#include "solver/test/packed.h"

namespace crema {
namespace {

// Whether the layer does something with batches that depends on those before them.
bool joins_batches(const LayerParameter& layer) {
  const BatchNormParameter& norm = layer.batch_norm_param();
  if (layer.type() == "BatchNorm") return norm.has_use_global_stats() && !norm.use_global_stats();
  if (layer.type() == "DetectionOutput")
    return !layer.detection_output_param().save_output_param().output_directory().empty();
  return layer.type() == "HDF5Output" || layer.type() == "MatWrite";
}

}  // namespace

TestBatches test_batches(Net& net, int64_t batches) {
  const std::vector<Node>& nodes = net.graph().nodes;
  const bool joined = std::any_of(nodes.begin(), nodes.end(),
                                  [](const Node& node) { return joins_batches(node.message); });
  const Communicator* const world = net.context().world();
  if (!world || joined || !net.carried().empty()) return {0, batches, false};
  return {batches * world->rank / world->ranks, batches * (world->rank + 1) / world->ranks, true};
}

std::vector<std::string> gather_counts(Communicator& world, const TestBatches& batches,
                                       const std::string& counts) {
  std::vector<std::string> all =
      world.gather(batches.shared || world.rank == 0 ? std::string_view(counts) : "");
  if (!batches.shared) all.resize(1);
  return all;
}

void TestLoss::add(double of_batch, int64_t records) {
  sum_ += static_cast<double>(records) * of_batch;
  records_ += records;
}

double TestLoss::mean() const { return sum_ / static_cast<double>(records_); }

std::string TestLoss::pack() const {
  Packer packer;
  packer.add(sum_, records_);
  return packer.bytes();
}

void TestLoss::merge(const std::vector<std::string>& of_ranks) {
  *this = {};
  for (const std::string& counts : of_ranks) {
    Unpacker unpacker(counts);
    TestLoss part;
    unpacker.get(part.sum_, part.records_);
    unpacker.end();
    sum_ += part.sum_;
    records_ += part.records_;
  }
}

}  // namespace crema
