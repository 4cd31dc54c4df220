// Memory use of a plan: by kind, by layer, and for another batch size.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

class Plan;

// Bytes by kind.
struct MemoryKinds {
  size_t blobs = 0;       // activations and their gradients, at the peak of a pass
  size_t workspace = 0;   // for kernels: how much it enlarges the arena
  size_t persistent = 0;  // blobs that persist between passes
  size_t parameters = 0, halves = 0, diffs = 0;  // weights, their 16-bit copies, gradients
  size_t history = 0;                            // of the solver
  size_t resident = 0;                           // records kept on a GPU

  size_t arena() const { return blobs + workspace; }
  size_t total() const;
};
// Name and bytes of each kind that is not 0.
std::vector<std::pair<std::string, size_t>> parts_of(const MemoryKinds& kinds);
// "activations and their gradients 20.1 MiB, workspace 1.0 MiB, ...".
std::string describe(const MemoryKinds& kinds);

// blobs, workspace and persistent.
MemoryKinds memory_of(const Plan& plan);

// Memory that one step of the plan adds. The steps sum to more than the plan needs, because blobs
// whose lifetimes do not overlap share memory.
struct LayerMemory {
  std::string layers, type;  // a step may run several layers; none: a layout conversion
  size_t blobs = 0;          // written by its forward pass, except in place
  size_t kept = 0;           // of these, still read by the backward pass
  size_t recomputed = 0;     // recomputed for the backward pass instead of kept
  size_t gradients = 0;      // of blobs, written by its backward pass
  size_t parameters = 0;     // weights; a shared parameter counts at its first layer
  size_t workspace = 0;
};
std::vector<LayerMemory> memory_by_layer(const Plan& plan, const Graph& graph);

// The step with the highest arena use, and the arena's content then, largest first.
struct MemoryPeak {
  struct Piece {
    std::string what;  // "conv1", "gradient of conv1", "saved by bn1", "workspace"
    size_t bytes = 0;
  };
  std::string layers;  // the layers of the step
  bool backward = false;
  size_t bytes = 0;  // of all pieces; the arena is larger where they leave gaps
  std::vector<Piece> pieces;
};
MemoryPeak memory_peak(const Plan& plan, const Graph& graph);

// The number of samples in one pass: the first extent of the first blob that a source or Input
// layer makes. A null layer: there is none.
struct BatchSource {
  const Node* node = nullptr;
  int64_t size = 1;
};
BatchSource batch_source(const Graph& graph);

// The largest batch for which the plan's blobs and workspace take at most `bytes`, estimated by
// scaling the blobs and leaving the workspace as it is; 0: none. `batch` is the plan's own.
int64_t largest_batch(const Plan& plan, int64_t batch, size_t bytes);

}  // namespace crema
