// Makes the deploy net from a training net: the blobs that a program fills and the layers from
// there to the results, without labels, losses and metrics.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/preparation.h"
#include "net/sources/weight_shapes.h"
#include "proto/net.pb.h"

namespace crema {

struct DeployOptions {
  // Batch size. 0: that of the first source in `assume`, otherwise 1. Input layers with a different
  // batch than their labels, and nets with recurrent layers, whose first axis is time, then do not
  // change.
  int batch = 0;
  // Shapes of sources that are not at hand, in the form of -assume.
  std::string assume;
  // The name of that setting in messages, and how a reader would write it.
  std::string assume_setting = "-assume";
  std::function<std::string(const std::string& shapes)> assume_command = [](const std::string& s) {
    return "-assume " + s;
  };
  std::string folder;                           // of the net's file
  std::function<std::string(int layer)> where;  // position of a layer of the given net
  NetPreparation preparation;                   // what the net's file says
  PreparationChange change;                     // of what data layers do; may be empty
  WeightShapes weights;                         // which correct shapes that `assume` guesses
  bool labels = false;                          // labels become inputs, too
};

struct DeployedNet {
  NetParameter net;
  std::vector<int> origins;  // for each layer, the one of the given net that it comes from
  // Image preparation and class names, as far as data layers, their databases or the net's file
  // define them.
  NetPreparation preparation;
  std::vector<std::string> inputs;  // the same for people, and shapes
  std::vector<std::string> notes;   // what was left out
};

// `net` is upgraded and without the layers of other phases. Layers keep their names, so weights
// load. A loss is replaced by what it computes from its prediction (SoftmaxWithLoss: Softmax) or
// removed, so that the prediction becomes an output. Error, with a position, if the shape of an
// input is unknown, or no result remains.
//   - Of losses of one type that read the same labels only those with the largest loss_weight stay;
//     the others are auxiliary and are removed with the layers that lead only to them.
//   - Of branches that share all their parameters by name the first stays.
//   - A Slice that takes such a branch's input out of a source becomes the input.
DeployedNet deploy(const NetParameter& net, const DeployOptions& options, Log& log);

// The text of a file in `folder`: preparation and notes as comments, then the net.
std::string text_of(const DeployedNet& deployed, const std::string& folder = ".");

}  // namespace crema
