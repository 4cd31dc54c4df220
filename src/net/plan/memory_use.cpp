#include "net/plan/memory_use.h"

#include <algorithm>
#include <set>

#include "device/aligned.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// Which of the plan's storages scale with the batch.
std::vector<bool> scaling_storages(const Plan& plan, int64_t batch) {
  std::vector<bool> scales(plan.storages.size(), false);
  const auto note = [&](int storage, const Shape& shape) {
    if (storage >= 0 && shape.axes() > 0 && shape.count() % batch == 0) scales[storage] = true;
  };
  for (const PlanValue& value : plan.values) {
    for (int storage :
         {value.storage, value.recomputed_storage, value.diff_storage, value.seed_storage})
      note(storage, value.shape);
  }
  for (const PlanNode& node : plan.nodes) {
    for (size_t j = 0; j < node.storages.bottom_diffs.size(); ++j)
      note(node.storages.bottom_diffs[j], plan.values[node.bottoms[j]].shape);
    for (size_t k = 0; k < node.saved.size(); ++k)
      note(node.storages.saved[k], node.saved[k].shape);
  }
  return scales;
}

// Arena and persistent memory of the plan for `wanted` samples instead of `batch`.
size_t bytes_at(const Plan& plan, const std::vector<bool>& scales, int64_t batch, int64_t wanted) {
  std::vector<Lifetime> pieces;
  size_t persistent = 0;
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    const Storage& storage = plan.storages[s];
    size_t bytes = storage.bytes;
    if (scales[s]) bytes = (bytes * wanted + batch - 1) / batch;
    if (storage.persistent) {
      persistent += aligned(bytes);
    } else {
      pieces.push_back({bytes, storage.first, storage.last, 0});
    }
  }
  return assign_offsets(pieces) + persistent + plan.folded_bytes();
}

std::string layers_of(const PlanNode& node, const Graph& graph) {
  std::vector<std::string> names;
  for (int member : node.members) names.push_back(graph.net.layer(member).name());
  return join(names, " ");
}

// A name for each storage; if several tensors share it, the first one's.
std::vector<std::string> names_of_storages(const Plan& plan, const Graph& graph) {
  std::vector<std::string> names(plan.storages.size());
  const auto note = [&](int storage, const std::string& name) {
    if (storage >= 0 && names[storage].empty()) names[storage] = name;
  };
  for (const PlanValue& value : plan.values) {
    note(value.storage, value.blob);
    note(value.recomputed_storage, value.blob + ", written again");
    note(value.diff_storage, "gradient of " + value.blob);
  }
  for (const PlanNode& node : plan.nodes) {
    for (size_t j = 0; j < node.storages.bottom_diffs.size(); ++j) {
      note(node.storages.bottom_diffs[j],
           "part of the gradient of " + plan.values[node.bottoms[j]].blob);
    }
    for (int storage : {node.storages.statistics, node.storages.affine})
      note(storage, "statistics for what follows " + layers_of(node, graph));
    note(node.storages.rounded, "integers for what follows " + layers_of(node, graph));
    for (int storage : node.storages.saved) note(storage, "saved by " + layers_of(node, graph));
    note(node.storages.forward_workspace, "workspace");
    note(node.storages.backward_workspace, "workspace");
  }
  for (int storage : plan.side_storages) note(storage, "workspace of side streams");
  return names;
}

}  // namespace

size_t MemoryKinds::total() const {
  return blobs + workspace + persistent + parameters + halves + diffs + history + resident;
}

std::vector<std::pair<std::string, size_t>> parts_of(const MemoryKinds& kinds) {
  std::vector<std::pair<std::string, size_t>> parts = {
      {"activations and their gradients", kinds.blobs},
      {"workspace", kinds.workspace},
      {"blobs that stay between passes", kinds.persistent},
      {"weights", kinds.parameters},
      {"copies of weights in 16 bits", kinds.halves},
      {"gradients of weights", kinds.diffs},
      {"solver history", kinds.history},
      {"records of the data", kinds.resident}};
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

std::string describe(const MemoryKinds& kinds) {
  std::vector<std::string> texts;
  for (const auto& [name, bytes] : parts_of(kinds)) texts.push_back(name + " " + size_text(bytes));
  return join(texts, ", ");
}

MemoryKinds memory_of(const Plan& plan) {
  MemoryKinds kinds;
  kinds.blobs = std::min(plan.blob_bytes, plan.arena_bytes);
  kinds.workspace = plan.arena_bytes - kinds.blobs;
  kinds.persistent = plan.persistent_bytes + plan.folded_bytes();
  return kinds;
}

std::vector<LayerMemory> memory_by_layer(const Plan& plan, const Graph& graph) {
  std::vector<LayerMemory> rows(plan.nodes.size());
  std::set<int> seen, parameters;  // each is counted where it first appears
  const int nodes = static_cast<int>(plan.nodes.size());
  const auto bytes_of = [&](int storage) {
    return storage >= 0 && seen.insert(storage).second ? plan.storages[storage].bytes : 0;
  };
  for (int i = 0; i < nodes; ++i) {
    const PlanNode& node = plan.nodes[i];
    LayerMemory& row = rows[i];
    row.layers = layers_of(node, graph);
    row.type = node.message.type();
    row.workspace = node.prepared.workspace;
    std::vector<int> written = node.storages.saved;
    for (int id : node.tops) written.push_back(plan.values[id].storage);
    for (int storage : written) {
      const size_t bytes = bytes_of(storage);
      row.blobs += bytes;
      if (bytes > 0 && plan.options.backward && plan.storages[storage].last >= nodes)
        row.kept += bytes;
    }
    for (int index : node.parameters) {
      const Parameter& parameter = graph.parameters[index];
      if (parameters.insert(index).second && plan.parameter_formats[index])
        row.parameters +=
            plan.parameter_formats[index]->elements(parameter.shape) * size_of(plan.options.dtype);
    }
  }
  for (int i = nodes - 1; i >= 0; --i) {
    const PlanNode& node = plan.nodes[i];
    for (int id : node.tops) {
      rows[i].recomputed += bytes_of(plan.values[id].recomputed_storage);
      rows[i].gradients += bytes_of(plan.values[id].diff_storage);
      rows[i].gradients += bytes_of(plan.values[id].seed_storage);
    }
    for (int storage : node.storages.bottom_diffs) rows[i].gradients += bytes_of(storage);
  }
  return rows;
}

MemoryPeak memory_peak(const Plan& plan, const Graph& graph) {
  const auto lives = [&](const Storage& storage, int step) {
    return !storage.persistent && storage.bytes > 0 && storage.first <= step &&
           step <= storage.last;
  };
  MemoryPeak peak;
  int at = 0;
  for (int step = 0; step < plan.step_count(); ++step) {
    size_t bytes = 0;
    for (const Storage& storage : plan.storages) bytes += lives(storage, step) ? storage.bytes : 0;
    if (bytes > peak.bytes) at = step, peak.bytes = bytes;
  }
  const int nodes = static_cast<int>(plan.nodes.size());
  peak.backward = at >= nodes;
  peak.layers = layers_of(plan.nodes[peak.backward ? plan.step_count() - 1 - at : at], graph);
  const std::vector<std::string> names = names_of_storages(plan, graph);
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    const Storage& storage = plan.storages[s];
    if (lives(storage, at)) peak.pieces.push_back({names[s], storage.bytes});
  }
  std::stable_sort(peak.pieces.begin(), peak.pieces.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return peak;
}

BatchSource batch_source(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!node.bottoms.empty() || node.tops.empty() || !node.parameters.empty()) continue;
    const Shape& shape = graph.values[node.tops[0]].shape;
    if (shape.axes() > 0) return {&node, shape[0]};
  }
  return {};
}

int64_t largest_batch(const Plan& plan, int64_t batch, size_t bytes) {
  const std::vector<bool> scales = scaling_storages(plan, batch);
  int64_t fits = 0, too_large = batch + 1;
  while (too_large - fits > 1) {
    const int64_t middle = (fits + too_large) / 2;
    (bytes_at(plan, scales, batch, middle) <= bytes ? fits : too_large) = middle;
  }
  return fits;
}

}  // namespace crema
