// Pass "memory": assigns memory to every tensor. Views and in-place layers share their bottom's
// memory if nothing needs the old content; everything else is in one arena from the step that
// writes it to the last step that reads it.
#include <algorithm>
#include <map>
#include <set>

#include "device/aligned.h"
#include "layers/python_hook.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// Parts of a gradient that exist at a time. Summing them late costs their memory, summing them in
// pairs more passes over memory.
constexpr size_t kMaxParts = 8;

class MemoryPlanner {
 public:
  explicit MemoryPlanner(Plan& plan)
      : plan_(plan), readers_(readers_of(plan)), parts_(plan.values.size()) {}

  void run() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) place_contents(static_cast<int>(i));
    for (int i = static_cast<int>(plan_.nodes.size()) - 1; i >= 0; --i) place_diffs(i);
    place_all();
  }

 private:
  int last_step() const { return plan_.step_count() - 1; }
  bool reuse() const { return plan_.options.reuse_memory && !plan_.options.keep_blobs; }

  // Programs may keep the arrays of such a layer, and read them after the pass.
  bool seen_by_python(int id) const {
    const auto& readers = readers_[id];
    return !plan_.options.backward &&
           std::any_of(readers.begin(), readers.end(), [&](const auto& reader) {
             return python_object(*plan_.nodes[reader.first].layer) != nullptr;
           });
  }

  int add_storage(size_t bytes, int first, int last, bool persistent = false) {
    Storage storage;
    storage.bytes = bytes;
    storage.first = reuse() ? first : 0;
    storage.last = reuse() ? last : last_step();
    storage.persistent = persistent;
    plan_.storages.push_back(storage);
    return static_cast<int>(plan_.storages.size()) - 1;
  }

  void extend(int storage, int step) {
    plan_.storages[storage].last = std::max(plan_.storages[storage].last, step);
  }

  void place_contents(int i) {
    PlanNode& node = plan_.nodes[i];
    const bool keeps = node.layer->traits().keeps_tops;
    for (size_t j = 0; j < node.tops.size(); ++j) {
      PlanValue& top = plan_.values[node.tops[j]];
      const Reads reads = reads_of(plan_, readers_, node.tops[j]);
      int last = top.recomputed() ? reads.last_forward : reads.last();
      if (seen_by_python(node.tops[j])) last = last_step();
      if (top.recomputed()) {
        top.recomputed_storage =
            add_storage(top.bytes(), reads.first_backward, reads.last_backward);
      }
      if (top.folded()) {
        const auto count = static_cast<size_t>(plan_.pairs_of_channels(node).count());
        node.storages.affine =
            add_storage(count * size_of(DType::f16), plan_.forward_step(i), last);
      } else if (shares_bottom(node, i, top)) {
        top.storage = plan_.values[node.bottoms[0]].storage;
        extend(top.storage, last);
      } else {
        // Each micro-batch writes a part.
        const bool by_parts = plan_.micro_batches.has(i) && !top.in_micro_batch;
        const int first = plan_.forward_step(by_parts ? plan_.micro_batches.first : i);
        const Edge& edge = node.prepared.top_edge;
        if (j > 0 || !edge.only_rounded) top.storage = add_storage(top.bytes(), first, last, keeps);
        if (j == 0 && edge.rounded)
          node.storages.rounded = add_storage(top.bytes() / size_of(top.dtype), first, last);
      }
    }
    if (node.prepared.top_edge.statistics) {
      const auto bytes = static_cast<size_t>(plan_.pairs_of_channels(node).count()) * sizeof(float);
      node.storages.statistics = add_storage(bytes, plan_.forward_step(i),
                                             plan_.forward_step(node.edges.statistics_reader));
    }
    // Counts of a loss or a metric are read after the pass.
    const bool counts = plan_.options.backward && !node.backward && !node.stale &&
                        plan_.loss_parts(node).loss == PartsRule::counted;
    const int until = node.backward ? plan_.backward_step(i)
                      : counts      ? last_step()
                                    : plan_.forward_step(i);
    node.storages.saved.clear();
    for (const TensorSpec& spec : node.saved) {
      const size_t bytes = static_cast<size_t>(spec.shape.count()) *
                           size_of(spec.dtype.value_or(plan_.options.dtype));
      node.storages.saved.push_back(
          add_storage(bytes, plan_.forward_step(i), until, spec.persistent));
    }
  }

  bool shares_bottom(const PlanNode& node, int i, const PlanValue& top) const {
    if (node.bottoms.empty() || node.stale) return false;
    if (node.layer->traits().is_view) return true;
    if (!node.layer->traits().in_place || !reuse() || top.top != 0) return false;
    const PlanValue& bottom = plan_.values[node.bottoms[0]];
    const Storage& storage = plan_.storages[bottom.storage];
    return !storage.persistent && bottom.bytes() == top.bytes() && bottom.order == top.order &&
           bottom.dtype == top.dtype && storage.last <= plan_.forward_step(i) &&
           std::count_if(node.bottoms.begin(), node.bottoms.end(), [&](int other) {
             return plan_.values[other].storage == bottom.storage;  // also as a view of it
           }) == 1;
  }

  void place_diffs(int i) {
    PlanNode& node = plan_.nodes[i];
    node.storages.bottom_diffs.assign(node.bottoms.size(), -1);
    for (size_t k = 0; k < node.tops.size(); ++k) gather_diff(i, k);
    if (!node.backward) return;
    const int now = plan_.backward_step(i);
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      if (!node.propagate[j]) continue;
      PlanValue& bottom = plan_.values[node.bottoms[j]];
      const int shared = j == 0 ? shared_diff(node, node.bottoms[j]) : -1;
      const int storage = shared >= 0 ? shared : add_storage(bottom.bytes(), now, now);
      node.storages.bottom_diffs[j] = storage;
      Parts& parts = parts_[node.bottoms[j]];
      parts.storages.push_back(storage);
      parts.last_writer = i;
      bottom.diff_storage = parts.storages[0];
      if (parts.storages.size() == kMaxParts && !plan_.options.keep_blobs) add_up(node.bottoms[j]);
    }
  }

  // The gradient of a top, when the backward of its producer takes it; that may not run at all.
  void gather_diff(int i, size_t k) {
    PlanNode& node = plan_.nodes[i];
    const int id = node.tops[k];
    PlanValue& top = plan_.values[id];
    std::vector<int>& parts = parts_[id].storages;
    if (parts.empty() && !node.backward) return;
    if (parts.empty()) {
      // No reader: the loss weight alone, a seed from the user, or zero for a top that no loss
      // depends on.
      top.diff_storage = add_storage(top.bytes(), 0, last_step(), true);
      if (top.loss_weight == 0 || node.layer->is_loss() || plan_.options.keep_blobs) return;
      // The loss weight is there for all passes, but backward may overwrite its top's gradient.
      const int now = plan_.backward_step(i);
      top.seed_storage = top.diff_storage;
      top.diff_storage = add_storage(top.bytes(), now, now);
      node.diff_sums.push_back({id, {top.seed_storage}, {}, {}});
      return;
    }
    if (top.loss_weight != 0) {
      top.seed_storage = add_storage(top.bytes(), 0, last_step(), true);
      parts.push_back(top.seed_storage);
    }
    const bool taken = k == 0 && node.backward && !plan_.options.keep_blobs &&
                       static_cast<int>(parts.size()) <= node.prepared.top_edge.gradient_parts;
    if (taken) {
      node.storages.gradient_parts.assign(parts.begin() + 1, parts.end());
    } else if (parts.size() > 1) {
      add_up(id);
    }
    for (int storage : parts) extend(storage, plan_.backward_step(i));
    if (top.keep && node.bottoms.empty()) plan_.storages[parts[0]].persistent = true;
  }

  // Sums all parts of a gradient so far into one, as soon as the last of them is written: the first of
  // them, unless a program sees them all.
  void add_up(int id) {
    auto& [storages, last_writer] = parts_[id];
    for (int storage : storages) extend(storage, plan_.backward_step(last_writer));
    plan_.nodes[last_writer].diff_sums.push_back({id, storages, {}, {}});
    storages.resize(1);
    if (!plan_.options.keep_blobs) return;
    const int now = plan_.backward_step(last_writer);
    storages[0] = add_storage(plan_.values[id].bytes(), now, now);
    plan_.values[id].diff_storage = storages[0];
  }

  // The storage of the top's gradient, if backward may overwrite it with the bottom's; otherwise
  // -1.
  int shared_diff(const PlanNode& node, int id) const {
    const PlanValue& bottom = plan_.values[id];
    const PlanValue& top = plan_.values[node.tops[0]];
    const bool view = node.layer->traits().is_view;
    if (!view && !(node.layer->traits().in_place && reuse())) return -1;
    // With keep_blobs gradients are shown, and the bottom's sum is not the top's gradient.
    if (plan_.options.keep_blobs && readers_[id].size() > 1) return -1;
    if (plan_.storages[top.diff_storage].persistent || top.bytes() != bottom.bytes()) return -1;
    if ((top.order != bottom.order && !view) || top.dtype != bottom.dtype) return -1;
    return top.diff_storage;
  }

  // Keeps what side streams read or write until the end of the pass: what gradients of parameters
  // are computed from, and losses. A step that reads such a loss waits for the side streams.
  void keep_for_side_stream() {
    std::set<int> losses;
    for (PlanNode& node : plan_.nodes) {
      for (int id : node.bottoms) node.joins |= losses.count(plan_.values[id].storage) > 0;
      const std::vector<bool>& parameters = node.preparation.parameter_needs_diff;
      if (!node.backward || std::count(parameters.begin(), parameters.end(), true) == 0) continue;
      for (int id : node.tops) {
        const PlanValue& top = plan_.values[id];
        extend(top.diff_storage, last_step());
        if (node.layer->is_loss()) losses.insert(top.storage);
        if (node.layer->is_loss() || node.reads.top) extend(top.storage, last_step());
      }
      for (int id : node.bottoms) extend(plan_.values[id].storage, last_step());
      for (int storage : node.storages.saved) extend(storage, last_step());
    }
  }

  // Parameter gradients of consecutive layers run on different side streams; those of shared
  // parameters all run on side stream 0, with the losses. A node that propagates no blob gradient
  // uses the main stream, where nothing else waits to run. Also chooses early_node, whose weights
  // are updated while the nodes before it run backward. LeNet, with 0.4 million, lost 7 % with it.
  // Large nets, which have no side streams, also lose: the update holds multiprocessors that the
  // libraries' kernels wait for (VGG16, AlexNet).
  void choose_streams() {
    constexpr int64_t kWorthALaunch = int64_t{1} << 20;  // parameters
    int64_t maximum = kWorthALaunch - 1;
    std::map<int, int> users;
    for (const PlanNode& node : plan_.nodes) {
      for (int parameter : node.parameters) ++users[parameter];
    }
    int side_stream = 0;
    for (auto node = plan_.nodes.rbegin(); node != plan_.nodes.rend(); ++node) {
      const auto shared = [&](int parameter) { return users[parameter] > 1; };
      if (node->parameters.empty() ||
          std::any_of(node->parameters.begin(), node->parameters.end(), shared))
        continue;
      if (std::count(node->propagate.begin(), node->propagate.end(), true) == 0) {
        node->side_stream = Context::kHere;
        continue;
      }
      side_stream = (side_stream + 1) % Context::kSideStreams;
      node->side_stream = side_stream;
      int64_t count = 0;
      for (const ParameterSpec& spec : node->layer->parameters()) count += spec.shape.count();
      if (!node->backward || count <= maximum) continue;
      maximum = count;
      plan_.early_node = static_cast<int>(plan_.nodes.rend() - node) - 1;
    }
  }

  int add_workspace(size_t bytes, int first, int last) {
    const int storage = add_storage(bytes, first, last);
    plan_.storages[storage].workspace = true;
    return storage;
  }

  // Each step has its own, so that workspace does not add to steps that need none.
  void place_workspaces() {
    if (plan_.options.overlap) {
      for (int side_stream = 0; side_stream < Context::kSideStreams; ++side_stream)
        plan_.side_storages.push_back(add_workspace(plan_.workspace_bytes, 0, last_step()));
    }
    const int common = reuse() ? -1 : add_workspace(plan_.workspace_bytes, 0, last_step());
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& node = plan_.nodes[i];
      node.storages.forward_workspace = node.storages.backward_workspace = common;
      if (!reuse()) continue;
      size_t bytes = node.prepared.workspace;
      const int forward = plan_.forward_step(static_cast<int>(i)),
                backward = plan_.backward_step(static_cast<int>(i));
      node.storages.forward_workspace = add_workspace(bytes, forward, forward);
      if (!node.backward) continue;
      for (const Recomputation& recomputed : node.recomputations)
        bytes = std::max(bytes, plan_.nodes[recomputed.node].prepared.workspace);
      node.storages.backward_workspace = add_workspace(bytes, backward, backward);
    }
  }

  // The bytes that all pieces except workspaces need.
  size_t bytes_of_blobs() const {
    std::vector<Lifetime> pieces;
    for (const Storage& storage : plan_.storages) {
      if (!storage.persistent && !storage.workspace)
        pieces.push_back({storage.bytes, storage.first, storage.last, 0});
    }
    return assign_offsets(pieces);
  }

  void place_all() {
    place_workspaces();
    if (plan_.options.overlap) {
      keep_for_side_stream();
      choose_streams();
    }
    plan_.blob_bytes = bytes_of_blobs();
    std::vector<Lifetime> pieces;
    std::vector<size_t> ids;
    plan_.persistent_bytes = 0;
    for (size_t s = 0; s < plan_.storages.size(); ++s) {
      Storage& storage = plan_.storages[s];
      if (storage.persistent) {
        storage.offset = plan_.persistent_bytes;
        plan_.persistent_bytes += aligned(storage.bytes);
        continue;
      }
      pieces.push_back({storage.bytes, storage.first, storage.last, 0});
      ids.push_back(s);
    }
    plan_.arena_bytes = std::max(assign_offsets(pieces), plan_.folding_bytes());
    for (size_t k = 0; k < pieces.size(); ++k) plan_.storages[ids[k]].offset = pieces[k].offset;
  }

  Plan& plan_;
  std::vector<std::vector<std::pair<int, int>>> readers_;
  // The parts of a value's gradient so far.
  struct Parts {
    std::vector<int> storages;
    int last_writer = -1;  // node
  };
  std::vector<Parts> parts_;
};

}  // namespace

void plan_memory(Plan& plan) { MemoryPlanner(plan).run(); }

}  // namespace crema
