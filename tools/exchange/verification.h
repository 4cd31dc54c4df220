// Verification of written models: the same inputs through Crema and through other runtimes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

struct VerifiedBlob {
  std::string where;  // of the layer that makes it
  std::string blob, shape;
  bool output = false;  // a result of the net
  double largest = 0;   // of the absolute differences
  double relative = 0;  // that, of the blob's largest value; nan where one is nan
};

// What one runtime computed.
struct Verification {
  std::string runtime, version;
  std::string problem;  // why it could not run the model; "": it ran
  std::vector<VerifiedBlob> blobs;
};

// A model and what its net has in common with it.
struct ComparedModel {
  std::string bytes;  // the model; empty: it is the file `path`
  std::string path;
  std::string weights;  // not empty: `path` is a Caffe net, and these are its weights
  std::map<int, std::string>
      values;  // of the net's graph (by index), with their names in the model
  std::map<int, std::string> makers;  // of a Caffe net's values: the layers that make them
};

// Runs the model with `draws` random inputs in each runtime that `python` (a program) has, and compares
// those blobs. Empty: it has none. python_problem: why it could not
// be asked; "": it was. Changes the net's inputs.
std::vector<Verification> verify_model(Net& net, const ComparedModel& compared,
                                       const std::string& python, int draws,
                                       std::string* python_problem);

// The same with a net that was read from the written files.
Verification verify_net(Net& net, Net& again, const ComparedModel& compared, int draws);

}  // namespace crema
