// How much memory a plan takes: by kind, by layer, and for a batch of another size.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/graph.h"

namespace crema {

class Plan;

// Bytes by kind.
struct MemoryKinds {
  size_t blobs = 0;       // activations and their gradients, at the peak of a pass
  size_t workspace = 0;   // of kernels: what the arena has more because of it
  size_t persistent = 0;  // blobs that stay between passes
  size_t parameters = 0, halves = 0, diffs = 0;  // weights, copies of them in 16 bits, gradients
  size_t history = 0;                            // of the solver
  size_t resident = 0;                           // records kept on a GPU

  size_t arena() const { return blobs + workspace; }
  size_t total() const;
};
// Each kind's name and bytes, without those of 0 bytes.
std::vector<std::pair<std::string, size_t>> parts_of(const MemoryKinds& kinds);
// "activations and their gradients 20.1 MiB, workspace 1.0 MiB, ...".
std::string describe(const MemoryKinds& kinds);

// blobs, workspace and persistent.
MemoryKinds memory_of(const Plan& plan);

// What one step of the plan adds. The sums of all steps are more than the plan takes, because blobs
// whose lives do not overlap share memory.
struct LayerMemory {
  std::string layers, type;  // a step may stand for several layers; none: a change of layout
  size_t blobs = 0;          // what its forward pass writes, apart from what it writes in place
  size_t kept = 0;           // of these, what the backward pass still reads
  size_t again = 0;          // what is not kept but written again for the backward pass
  size_t gradients = 0;      // of blobs, written by its backward pass
  size_t parameters = 0;     // weights; of a parameter with several holders, at the first
  size_t workspace = 0;
};
std::vector<LayerMemory> memory_by_layer(const Plan& plan, const Graph& graph);

// The step at which most of the arena is in use, and what lies there then, largest first.
struct MemoryPeak {
  struct Piece {
    std::string what;  // "conv1", "gradient of conv1", "saved by bn1", "workspace"
    size_t bytes = 0;
  };
  std::string layers;  // those of the step
  bool backward = false;
  size_t bytes = 0;  // of all pieces; the arena is larger where they leave gaps
  std::vector<Piece> pieces;
};
MemoryPeak memory_peak(const Plan& plan, const Graph& graph);

// Samples in one pass: the first extent of the first blob that no layer feeds. Null layer: there is
// none.
struct BatchSource {
  const LayerParameter* layer = nullptr;
  int64_t size = 1;
};
BatchSource batch_source(const Graph& graph);

// The largest batch for which the plan's blobs and workspace are at most `bytes`, worked out with
// the sizes of the blobs scaled and the workspace as it is; 0: none. `batch` is the plan's own.
int64_t largest_batch(const Plan& plan, int64_t batch, size_t bytes);

}  // namespace crema
