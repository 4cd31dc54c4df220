// What -dump_plan prints.
#include <algorithm>
#include <map>

#include "base/visible.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

class Dump {
 public:
  Dump(const Plan& plan, const Graph& graph) : plan_(plan), graph_(graph) { sort_storages(); }

  std::string text() {
    out_ << passes();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) step(static_cast<int>(i));
    out_ << memory();
    return out_.str();
  }

 private:
  static constexpr const char* kRecompute[] = {"off", "cheap", "all"};
  static const char* on(bool pass) { return pass ? "on" : "off"; }

  std::string passes() const {
    const PlanOptions& options = plan_.options;
    size_t fused = 0, reorders = 0, last = 0, together = 0;
    for (const PlanNode& node : plan_.nodes) {
      if (node.members.size() > 1) fused += node.members.size();
      reorders += node.message.type() == "Reorder";
    }
    for (const PlanValue& value : plan_.values) last += value.order == Order::channels_last;
    size_t recomputed = 0, recomputed_bytes = 0;
    for (const PlanValue& value : plan_.values) {
      recomputed += value.recomputed();
      if (value.recomputed()) recomputed_bytes += value.bytes();
    }
    for (const auto& [storage, kind] : kinds_) together += plan_.storages[storage].bytes;
    return cat("precision ", name_of(options.precision), "\nfuse ",
               on(options.fuse && !options.keep_blobs), ": ", fused,
               " layers share a step with others\nformat ", on(options.format), ": ", last, " of ",
               plan_.values.size(), " values channels-last, ", reorders, " reorders\nmemory ",
               on(options.reuse_memory && !options.keep_blobs), ": ", size_text(together), " in ",
               size_text(plan_.arena_bytes), ", and ",
               size_text(plan_.persistent_bytes + plan_.folded_bytes()),
               " kept between passes\nrecompute ", kRecompute[static_cast<int>(options.recompute)],
               ": ", recomputed, " values, ", size_text(recomputed_bytes),
               ", written again in backward\noverlap ", on(options.overlap), micro_batches(),
               "\n\n");
  }

  std::string micro_batches() const {
    const MicroBatches& micro = plan_.micro_batches;
    if (micro.last < 0) return "\nmicro_batches off";
    return cat("\nmicro_batches on: steps ", micro.first, " to ", micro.last, " run for ",
               micro.samples, " samples at a time");
  }

  std::string position(int storage) const {
    if (storage < 0) return "nowhere";
    const Storage& s = plan_.storages[storage];
    const std::string at =
        cat(s.persistent ? "kept+" : "arena+", s.offset, " ", size_text(s.bytes));
    return s.persistent ? at : cat(at, " steps ", s.first, "-", s.last);
  }

  std::string value(int id) const {
    const PlanValue& v = plan_.values[id];
    std::string text = cat(id, ":", visible(v.blob), " ", v.shape.brief(), " ", name_of(v.dtype),
                           v.order == Order::channels_last ? " channels-last" : "");
    if (v.channels > 0) text += cat(" in ", v.channels, " channels");
    text += ", " + position(v.storage);
    if (v.recomputed()) text += ", again " + position(v.recomputed_storage);
    if (v.diff_storage >= 0) text += ", gradient " + position(v.diff_storage);
    return text;
  }

  std::string runs_on(const PlanNode& node) const {
    if (node.layer->traits().is_view) return "a view: nothing is computed";
    if (node.layer->traits().works_on_host) return "on the host";
    return node.chosen.empty() ? "own" : join(node.chosen, ", ");
  }

  void step(int i) {
    const PlanNode& node = plan_.nodes[i];
    std::vector<std::string> members;
    for (int member : node.members) members.push_back(graph_.net.layer(member).name());
    if (members.empty()) members.push_back(node.message.name());
    out_ << "step " << plan_.forward_step(i);
    if (node.backward) out_ << " and " << plan_.backward_step(i);
    out_ << ": " << node.message.type() << " = " << visible(join(members, " + ")) << "; "
         << name_of(plan_.precision_of(node)) << "; " << runs_on(node) << "\n";
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      const int id = node.bottoms[j];
      out_ << "    reads " << id << ":" << visible(plan_.values[id].blob);
      if (node.backward && node.storages.bottom_diffs[j] >= 0 &&
          node.storages.bottom_diffs[j] != plan_.values[id].diff_storage)
        out_ << ", leaves a part of its gradient in " << position(node.storages.bottom_diffs[j]);
      out_ << "\n";
    }
    for (const Recomputation& recomputed : node.recomputations)
      out_ << "    backward begins with "
           << visible(plan_.values[plan_.nodes[recomputed.node].tops[0]].blob)
           << " written again\n";
    for (const DiffSum& sum : node.diff_sums)
      out_ << (sum.storages.size() == 1 ? "    copies " : "    sums ") << sum.storages.size()
           << " gradients of " << visible(plan_.values[sum.value].blob) << "\n";
    if (node.shapes.dynamic) out_ << "    how much it writes depends on the data\n";
    if (node.edges.bottom.relu) out_ << "    takes its gradient through the ReLU before\n";
    if (node.edges.top.relu) out_ << "    its gradient comes through the ReLU\n";
    if (node.storages.affine >= 0) {
      out_ << "    hands on scale and shift of its channels; "
           << (plan_.values[node.tops[0]].recomputed() ? "backward has the top written\n"
                                                       : "the top is never written\n");
    }
    if (node.storages.rounded >= 0)
      out_ << "    hands on its top as integers of 8 bits"
           << (node.prepared.top_edge.only_rounded ? "; the top is never written\n" : "\n");
    if (node.prepared.top_edge.statistics) out_ << "    hands on the sums of its channels\n";
    if (!node.storages.gradient_parts.empty())
      out_ << "    takes " << node.storages.gradient_parts.size() + 1 << " parts of a gradient\n";
    for (int id : node.tops) out_ << "    writes " << value(id) << "\n";
    for (size_t k = 0; k < node.saved.size(); ++k)
      out_ << "    saves " << node.saved[k].shape.brief() << ", "
           << position(node.storages.saved[k]) << "\n";
  }

  // A storage that several tensors, or content and gradient, share is counted once.
  void sort_storages() {
    const auto note = [&](int storage, const char* kind) {
      if (storage >= 0) kinds_.emplace(storage, kind);
    };
    for (const PlanValue& v : plan_.values) {
      note(v.storage, "activations");
      note(v.recomputed_storage, "activations again");
    }
    for (const PlanValue& v : plan_.values) {
      note(v.seed_storage, "loss weights");
      const bool seed =
          v.diff_storage >= 0 && plan_.storages[v.diff_storage].persistent && v.loss_weight != 0;
      note(v.diff_storage, seed ? "loss weights" : "gradients");
    }
    for (const PlanNode& node : plan_.nodes) {
      for (int storage : node.storages.bottom_diffs) note(storage, "gradients");
      for (int storage : node.storages.saved) note(storage, "saved");
      for (int storage : {node.storages.statistics, node.storages.affine})
        note(storage, "statistics");
      note(node.storages.rounded, "activations");
    }
  }

  std::string memory() const {
    struct Total {
      size_t bytes = 0, tensors = 0;
    };
    std::map<std::string, Total> totals;
    for (const auto& [storage, kind] : kinds_) {
      totals[kind].bytes += plan_.storages[storage].bytes;
      ++totals[kind].tensors;
    }
    std::vector<std::string> parts;
    for (const auto& [kind, total] : totals)
      parts.push_back(cat(kind, " ", size_text(total.bytes), " in ", total.tensors));
    parts.push_back(cat("workspace up to ", size_text(plan_.workspace_bytes), " a step"));
    return cat("\nmemory: ", join(parts, ", "), "\n");
  }

  const Plan& plan_;
  const Graph& graph_;
  std::map<int, const char*> kinds_;
  std::ostringstream out_;
};

}  // namespace

std::string Plan::dump(const Graph& graph) const { return Dump(*this, graph).text(); }

}  // namespace crema
