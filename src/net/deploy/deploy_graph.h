// DeployGraph: which blobs of a net are data, which are labels, and which come from learned layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/net.pb.h"

namespace crema {

// The role of a layer when a net is deployed.
enum class DeployRole {
  source,   // data or labels: its tops become inputs, or go
  made_up,  // DummyData next to other sources
  layer,
  bypass,   // changes its first bottom by labels while it is trained: its first top is that bottom
  loss,     // or any layer with a loss_weight
  metric,   // needs labels, or writes files: removed, and its bottom is a result
  silence,  // removed, and its bottom is not a result
};

// One version of a blob: each layer that writes a blob in place makes another.
struct DeployBlob {
  std::string name;
  int producer = -1, top = 0;
  std::vector<int> readers;  // layers
  bool learned = false;      // a layer with parameters leads here
  bool gone = false;         // computed from labels, losses or metrics
};

struct DeployGraph {
  // `where` as in DeployOptions. Error for a bottom that no layer above makes.
  DeployGraph(const NetParameter& net, const std::function<std::string(int)>& where);

  // For each blob: it is one of these, or layers without parameters lead from one of them to it.
  std::vector<bool> followers(const std::vector<int>& from) const;
  bool goes(int layer) const;        // the layer is removed
  bool is_silenced(int blob) const;  // only Silence reads it

  const NetParameter& net;
  std::vector<DeployRole> roles;
  std::vector<bool> learns;                     // of each layer: it has parameters
  std::vector<std::vector<int>> bottoms, tops;  // of each layer: blobs
  std::vector<DeployBlob> blobs;

 private:
  void connect(const std::function<std::string(int)>& where);
  void find_learned();
  std::vector<bool> find_useful() const;
  void find_gone(const std::vector<bool>& useful);
};

// Whether this bottom is a label that the layer does not need in a deploy net.
bool is_optional_label(const LayerParameter& layer, int bottom);

}  // namespace crema
