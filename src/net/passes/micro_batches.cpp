// Pass "micro_batches": where no gradient is computed, a CPU runs some consecutive nodes for a few
// samples at a time. Values that only these nodes read are then small enough for the processor's
// cache, which they would otherwise leave between two nodes. The price is that weights are read once
// for each micro-batch.
#include <algorithm>

#include "base/error.h"
#include "layers/python_hook.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// The share of the last cache that the values of a node may take. The rest is left to its weights
// and to other programs.
constexpr double kShare = 0.75;

class MicroBatchChooser {
 public:
  MicroBatchChooser(Plan& plan, size_t cache_bytes)
      : plan_(plan),
        cache_(static_cast<int64_t>(kShare * static_cast<double>(cache_bytes))),
        on_batch_(plan.values.size(), false) {}

  void run() {
    std::vector<bool> able;
    for (const PlanNode& node : plan_.nodes) {
      // A pass begins with the nodes up to the last one that works on the host.
      if (node.layer->traits().works_on_host) std::fill(able.begin(), able.end(), false);
      able.push_back(takes_parts(node));
      if (samples_ == 0 && node.bottoms.empty() && !node.tops.empty()) {
        const Shape& shape = plan_.values[node.tops[0]].shape;
        samples_ = shape.axes() > 0 ? shape[0] : 0;
        on_batch_[node.tops[0]] = samples_ > 0;
      }
      for (const int id : node.tops) on_batch_[id] = on_batch_[id] || able.back();
    }
    if (samples_ < 2) return;
    MicroBatches best;
    double most = 0;
    for (int first = 0; first < static_cast<int>(able.size()); ++first) {
      if (!able[first]) continue;
      int last = first;
      while (last + 1 < static_cast<int>(able.size()) && able[last + 1]) ++last;
      choose_within(first, last, &most, &best);
      first = last;
    }
    plan_.micro_batches = best;
    shorten_values();
  }

 private:
  // Whether the node computes each sample from the same sample of its bottoms, in any batch.
  bool takes_parts(const PlanNode& node) const {
    const LayerTraits traits = node.layer->traits();
    if (node.bottoms.empty() || node.stale || node.shapes.dynamic ||
        node.shapes.depends_on_dynamic || traits.works_on_host || traits.keeps_tops ||
        traits.asks_ranks || traits.changes_parameters || traits.batch_statistics ||
        node.layer->is_loss() || python_object(*node.layer) || node.edges.statistics_reader >= 0)
      return false;
    std::vector<Shape> bottoms, one;
    for (const int id : node.bottoms) {
      if (!on_batch_[id]) return false;
      bottoms.push_back(plan_.values[id].shape);
      one.push_back(bottoms.back());
      one.back()[0] = 1;
    }
    for (size_t j = 0; j < bottoms.size(); ++j) {
      if (!traits.is_view && !node.layer->independent_along(static_cast<int>(j), 0, bottoms))
        return false;
    }
    try {
      const std::vector<Shape> tops = node.layer->infer(one).tops;
      for (size_t j = 0; j < node.tops.size(); ++j) {
        Shape wanted = plan_.values[node.tops[j]].shape;
        if (wanted.axes() == 0 || wanted[0] != samples_ ||
            plan_.values[node.tops[j]].loss_weight != 0)
          return false;
        wanted[0] = 1;
        if (j >= tops.size() || tops[j] != wanted) return false;
      }
    } catch (const Error&) {
      return false;  // it takes only the whole batch
    }
    return true;
  }

  // Bytes of what a node reads and writes, for one sample.
  int64_t bytes_of_sample(const PlanNode& node) const {
    if (node.layer->traits().is_view) return 0;
    int64_t bytes = 0;
    for (const std::vector<int>* const ids : {&node.bottoms, &node.tops}) {
      for (const int id : *ids) bytes += static_cast<int64_t>(plan_.values[id].bytes()) / samples_;
    }
    return bytes;
  }

  static int64_t bytes_of_weights(const PlanNode& node) {
    int64_t count = 0;
    for (const ParameterSpec& spec : node.layer->parameters()) count += spec.shape.count();
    return count * static_cast<int64_t>(sizeof(float));
  }

  // The consecutive nodes for which micro-batches save most memory traffic: that of values which do
  // not stay in the cache otherwise, less that of the weights.
  void choose_within(int begin, int end, double* most, MicroBatches* best) const {
    for (int64_t samples = samples_ / 2; samples >= 1; --samples) {
      if (samples_ % samples != 0) continue;
      const int64_t parts = samples_ / samples;
      double sum = 0;
      for (int i = begin, first = begin; i <= end; ++i) {
        const int64_t of_sample = bytes_of_sample(plan_.nodes[i]);
        const bool fits = of_sample * samples <= cache_;
        const bool leaves = of_sample * samples_ > cache_;
        if (fits && leaves) sum += static_cast<double>(of_sample * samples_);
        sum -= static_cast<double>(bytes_of_weights(plan_.nodes[i]) * (parts - 1));
        if (sum <= 0) {
          sum = 0;
          first = i + 1;
        } else if (sum > *most) {
          *most = sum;
          *best = {first, i, samples, parts};
        }
      }
    }
  }

  // Values that stay within the micro-batches become as small as one.
  void shorten_values() {
    const MicroBatches& micro = plan_.micro_batches;
    const Readers readers = readers_of(plan_);
    std::vector<bool> within(plan_.values.size(), false);
    for (int i = micro.first; i <= micro.last; ++i) {
      for (const int id : plan_.nodes[i].tops) {
        const PlanValue& value = plan_.values[id];
        within[id] = !value.output && !value.keep &&
                     std::all_of(readers[id].begin(), readers[id].end(),
                                 [&](const auto& reader) { return micro.has(reader.first); });
      }
    }
    // A view has the memory of its bottom.
    for (bool changed = true; changed;) {
      changed = false;
      for (int i = micro.first; i <= micro.last; ++i) {
        const PlanNode& node = plan_.nodes[i];
        if (!node.layer->traits().is_view) continue;
        std::vector<int> together = node.tops;
        together.push_back(node.bottoms[0]);
        const auto all =
            std::count_if(together.begin(), together.end(), [&](int id) { return within[id]; });
        if (all == 0 || all == static_cast<int64_t>(together.size())) continue;
        for (const int id : together) within[id] = false;
        changed = true;
      }
    }
    for (size_t id = 0; id < within.size(); ++id) {
      if (!within[id]) continue;
      plan_.values[id].in_micro_batch = true;
      plan_.values[id].shape[0] = micro.samples;
    }
  }

  Plan& plan_;
  const int64_t cache_;
  int64_t samples_ = 0;  // size of the batch, as the first value has it
  // The first value and what is computed from it alone, sample by sample. Others may have as many
  // rows by chance.
  std::vector<bool> on_batch_;
};

}  // namespace

void choose_micro_batches(Plan& plan, size_t cache_bytes) {
  MicroBatchChooser(plan, cache_bytes).run();
}

}  // namespace crema
