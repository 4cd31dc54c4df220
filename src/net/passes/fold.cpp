// Pass "fold": multiplies layers that map each channel by constants (BatchNorm with stored
// statistics, Scale, Bias) into the weights and the bias of the convolution or fully connected layer
// before them. Part of fuse, for plans without backward. The weights themselves stay as they are:
// plans have folded copies (plan/folded.h), which are renewed when the weights have changed. So have
// layers whose kernels want the weights in a form of their own (Prepared::packed).
#include <algorithm>

#include "device/aligned.h"
#include "kernels/move/reorder.h"
#include "kernels/norm/fold_channels.h"
#include "net/plan/plan.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class Folder {
 public:
  Folder(Context& context, Plan& plan, const std::vector<Parameter>& parameters)
      : context_(context),
        plan_(plan),
        parameters_(parameters),
        readers_(readers_of(plan)),
        dead_(plan.nodes.size(), false),
        holders_(parameters.size(), 0) {
    for (const PlanNode& node : plan.nodes) {
      for (const int id : node.parameters) ++holders_[id];
    }
  }

  void run() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!dead_[i]) fold_from(static_cast<int>(i));
    }
    remove_nodes(plan_, dead_);
  }

 private:
  void fold_from(int first) {
    const PlanNode& node = plan_.nodes[first];
    if (node.stale || node.bottoms.size() != 1 || node.parameters.empty() ||
        !has_own_parameters(node))
      return;
    LayerParameter message = node.message;
    if (!node.layer->give_bias(&message)) return;
    Folding folding;
    folding.parameters = node.parameters;
    std::vector<int> members = {first};
    for (int next = sole_reader(plan_, readers_, first); next >= 0;
         next = sole_reader(plan_, readers_, next)) {
      const PlanNode& map = plan_.nodes[next];
      if (map.stale || map.bottoms.size() != 1 || !has_own_parameters(map)) break;
      const std::optional<ChannelMap> values = map.layer->channel_map();
      if (!values) break;
      folding.maps.push_back({*values, map.parameters});
      members.push_back(next);
    }
    if (folding.maps.empty()) return;
    replace(members, message, std::move(folding));
  }

  // Layers that share parameters may see them in another shape, or change them in a pass, as a Scale
  // that clips its factors does.
  bool has_own_parameters(const PlanNode& node) const {
    const std::vector<ParameterSpec>& specs = node.layer->parameters();
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const int id = node.parameters[k];
      if (k >= specs.size() || parameters_[id].shape != specs[k].shape || holders_[id] > 1)
        return false;
    }
    return true;
  }

  void replace(const std::vector<int>& members, const LayerParameter& message, Folding folding) {
    PlanNode& first = plan_.nodes[members.front()];
    PlanNode& last = plan_.nodes[members.back()];
    PlanNode folded;
    static_cast<Node&>(folded) = first;
    folded.message = message;
    folded.layer = make_layer(message, first.layer->training(), first.layer->folder());
    folded.layer->share_rng_of(*first.layer);
    folded.layer->setup(context_, {plan_.values[first.bottoms[0]].shape});
    for (size_t m = 1; m < members.size(); ++m) {
      const PlanNode& map = plan_.nodes[members[m]];
      folded.parameters.insert(folded.parameters.end(), map.parameters.begin(),
                               map.parameters.end());
      folded.members.insert(folded.members.end(), map.members.begin(), map.members.end());
    }
    folded.tops = last.tops;
    folded.place = last.place;
    folding.weights.shape = folded.layer->parameters()[0].shape;
    folding.bias.shape = folded.layer->parameters()[1].shape;
    folded.folding = static_cast<int>(plan_.foldings.size());
    plan_.foldings.push_back(std::move(folding));
    for (const int member : members) dead_[member] = true;
    last = std::move(folded);
    dead_[members.back()] = false;
  }

  Context& context_;
  Plan& plan_;
  const std::vector<Parameter>& parameters_;
  Readers readers_;
  std::vector<bool> dead_;
  std::vector<int> holders_;  // how many nodes have each parameter
};

// Computes folded weights in row-major order, whatever the order of both ends.
class Writer {
 public:
  // The memory that write() needs, for the largest of the plan's foldings: offsets in bytes.
  struct Layout {
    size_t factors = 0, shifts = 0, bytes = 0;  // rows of weights come first
    explicit Layout(const Plan& plan) {
      int64_t weights = 0, channels = 0;
      for (const Folding& folding : plan.foldings) {
        weights = std::max(weights, folding.weights.shape.count());
        channels = std::max(channels, folding.bias.shape.count());
      }
      const auto bytes_of = [&](int64_t count) {
        return aligned(static_cast<size_t>(count) * size_of(plan.options.dtype));
      };
      factors = bytes_of(weights);
      shifts = factors + bytes_of(channels);
      bytes = shifts + bytes_of(channels);
    }
  };

  Writer(Context& context, const Plan& plan, const Tensor& memory,
         const std::vector<Parameter>& parameters)
      : context_(context),
        parameters_(parameters),
        memory_(memory),
        layout_(plan),
        dtype_(plan.options.dtype) {}

  void write(const Folding& folding, const Prepared::Packed& packed, const Tensor& weights,
             const Tensor& bias) {
    const Tensor rows = part_of(memory_, 0, folding.weights.shape, dtype_);
    reorder(context_, of(folding.parameters, 0), rows);
    if (!folding.maps.empty()) {
      apply_maps(folding, rows, bias);
    } else if (bias.count() > 0) {
      reorder(context_, of(folding.parameters, 1), bias);
    }
    if (packed.bytes > 0) {
      packed.pack(context_, rows, weights);
    } else {
      reorder(context_, rows, weights);
    }
  }

 private:
  // To rows of weights; writes the bias.
  void apply_maps(const Folding& folding, const Tensor& rows, const Tensor& bias) {
    const Tensor factors = part_of(memory_, layout_.factors, bias.shape(), dtype_),
                 shifts = part_of(memory_, layout_.shifts, bias.shape(), dtype_);
    begin_channel_map(context_, of(folding.parameters, folding.parameters.size() > 1 ? 1 : -1),
                      factors, shifts);
    for (const auto& [map, ids] : folding.maps) {
      append_channel_map(context_,
                         {of(ids, map.mean), of(ids, map.variance), of(ids, map.factor),
                          of(ids, map.scale), of(ids, map.shift), map.eps},
                         factors, shifts);
    }
    scale_rows(context_, factors, rows);
    reorder(context_, shifts, bias);
  }

  Tensor of(const std::vector<int>& ids, int index) const {
    return index < 0 ? Tensor() : parameters_[ids[static_cast<size_t>(index)]].data;
  }

  Context& context_;
  const std::vector<Parameter>& parameters_;
  Tensor memory_;  // u8
  Layout layout_;
  DType dtype_;
};

}  // namespace

void fold_layers(Context& context, Plan& plan, const std::vector<Parameter>& parameters) {
  Folder(context, plan, parameters).run();
}

size_t Plan::folding_bytes() const { return foldings.empty() ? 0 : Writer::Layout(*this).bytes; }

size_t Plan::folded_bytes() const {
  size_t bytes = 0;
  for (const Folding& folding : foldings) bytes += folding.weights.bytes() + folding.bias.bytes();
  return bytes;
}

bool Plan::packs() const {
  return std::any_of(foldings.begin(), foldings.end(),
                     [](const Folding& folding) { return folding.weights.packed_bytes > 0; });
}

size_t Plan::new_folded_bytes(FoldedStore& store) const {
  size_t bytes = 0;
  for (const Folding& folding : foldings)
    if (!store.has(folding)) bytes += folding.weights.bytes() + folding.bias.bytes();
  return bytes;
}

void Plan::take_folded(Context& context, FoldedStore& store) {
  if (folded.size() == foldings.size()) return;
  folded.clear();
  for (const Folding& folding : foldings) folded.push_back(store.take(context, folding));
}

bool Plan::has_folded(uint64_t version) const {
  return std::all_of(folded.begin(), folded.end(),
                     [&](const auto& weights) { return weights->version == version; });
}

void Plan::write_folded(Context& context, const std::vector<Parameter>& parameters,
                        uint64_t version) {
  if (has_folded(version)) return;
  const Tensor memory(arena_, 0, {static_cast<int64_t>(folding_bytes())}, DType::u8);
  Writer writer(context, *this, memory, parameters);
  std::vector<const Prepared::Packed*> packed(
      foldings.size());  // the reader of each folding has it
  for (const PlanNode& node : nodes) {
    if (node.folding >= 0) packed[node.folding] = &node.prepared.packed;
  }
  for (size_t i = 0; i < foldings.size(); ++i) {
    if (folded[i]->version == version) continue;
    writer.write(foldings[i], *packed[i], folded[i]->weights, folded[i]->bias);
    folded[i]->version = version;
  }
}

}  // namespace crema
