// Pass "recompute": chooses values that are not kept for backward but recomputed just before its
// first step that reads them, from data that is kept anyway (batch normalization's output from its
// input). If the forward step that reads such a value can work from the same input (Edge::affine),
// forward does not write it; if that step's backward can too, it is never written.
#include <algorithm>
#include <limits>

#include "net/plan/plan.h"

namespace crema {
namespace {

// For Recompute::cheap. Recomputing only moves bytes, and no step is faster than memory: if it adds
// this share to the traffic of a pass, it takes at most this share of its time.
constexpr double kMaxTraffic = 1.0 / 32;
// Below this size a launch costs more than the memory is worth.
constexpr size_t kMinBytes = size_t{16} << 20;

struct Candidate {
  int value = -1;
  size_t saved = 0, moved = 0;  // bytes
  int first = -1;               // step that reads it
};

class Chooser {
 public:
  explicit Chooser(Plan& plan) : plan_(plan), readers_(readers_of(plan)) {}

  void run() {
    const bool all = plan_.options.recompute == Recompute::all;
    const double maximum = all ? std::numeric_limits<double>::infinity() : kMaxTraffic * traffic();
    std::vector<Candidate> candidates = find(all ? 1 : kMinBytes);
    // The most memory per traffic first, then the largest.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       const double x = static_cast<double>(a.moved) * static_cast<double>(b.saved),
                                    y = static_cast<double>(b.moved) * static_cast<double>(a.saved);
                       return x != y ? x < y : a.saved > b.saved;
                     });
    double spent = 0;
    for (const Candidate& candidate : candidates) {
      const auto& readers = readers_[candidate.value];
      const Prepared* const reader =
          readers.empty() ? nullptr : &plan_.nodes[readers[0].first].prepared;
      const auto moved = static_cast<double>(candidate.moved);
      if (spent + moved > maximum || depends_on_others(candidate)) continue;
      spent += moved;
      PlanValue& value = plan_.values[candidate.value];
      if (!reader || !reader->bottom_edge.affine) {
        value.storing = Storing::recomputed;
      } else {
        value.storing =
            reader->bottom_edge.affine_gradient ? Storing::folded : Storing::folded_recomputed;
      }
      if (!value.recomputed()) continue;
      plan_.nodes[plan_.step_count() - 1 - candidate.first].recomputations.push_back(
          {value.producer, {}});
    }
  }

 private:
  std::vector<Candidate> find(size_t minimum) const {
    std::vector<Candidate> found;
    for (const PlanNode& producer : plan_.nodes) {
      if (!producer.layer->traits().recomputes || !producer.backward || producer.tops.size() != 1)
        continue;
      const int id = producer.tops[0];
      const size_t bytes = plan_.values[id].bytes();
      const Reads reads = reads_of(plan_, readers_, id);
      if (bytes < minimum || reads.first_backward < 0 || has_view(id) ||
          reads.last_forward > plan_.forward_step(last_node()))
        continue;
      Candidate candidate{id, bytes, bytes, reads.first_backward};
      bool kept = true;
      for (int bottom : producer.bottoms) {
        kept = kept && reads_of(plan_, readers_, bottom).last() >= reads.first_backward;
        candidate.moved += plan_.values[bottom].bytes();
      }
      if (kept) found.push_back(candidate);
    }
    return found;
  }

  int last_node() const { return static_cast<int>(plan_.nodes.size()) - 1; }

  bool has_view(int id) const {
    return std::any_of(readers_[id].begin(), readers_[id].end(), [&](const auto& reader) {
      return plan_.nodes[reader.first].layer->traits().is_view;
    });
  }

  // True when its input is recomputed too, or it is the input of a recomputed value.
  bool depends_on_others(const Candidate& candidate) const {
    const auto recomputed = [&](int id) { return plan_.values[id].recomputed(); };
    const std::vector<int>& bottoms = plan_.nodes[plan_.values[candidate.value].producer].bottoms;
    const auto& readers = readers_[candidate.value];
    return std::any_of(bottoms.begin(), bottoms.end(), recomputed) ||
           std::any_of(readers.begin(), readers.end(), [&](const auto& reader) {
             const std::vector<int>& tops = plan_.nodes[reader.first].tops;
             return std::any_of(tops.begin(), tops.end(), recomputed);
           });
  }

  // Bytes of all values and gradients that forward and backward read and write, each once per step.
  double traffic() const {
    double bytes = 0;
    for (const PlanNode& node : plan_.nodes) {
      if (node.layer->traits().is_view) continue;
      for (size_t j = 0; j < node.bottoms.size(); ++j) {
        const int times =
            1 + (node.backward && node.reads.bottom_at(j)) + (node.backward && node.propagate[j]);
        bytes += times * static_cast<double>(plan_.values[node.bottoms[j]].bytes());
      }
      const int times = 1 + node.backward + (node.backward && node.reads.top);
      for (int id : node.tops) bytes += times * static_cast<double>(plan_.values[id].bytes());
    }
    return bytes;
  }

  Plan& plan_;
  Readers readers_;
};

}  // namespace

void choose_recomputed(Plan& plan) { Chooser(plan).run(); }

}  // namespace crema
