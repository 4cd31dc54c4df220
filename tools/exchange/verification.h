// Verification of ONNX models: the same inputs through Crema and through other runtimes.
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
  std::map<int, std::string>
      values;  // of the net's graph (by index), with their names in the model
};

// Runs the model with `draws` random inputs in each runtime that `python` (a program) has, and compares
// those blobs. Empty: it has none. python_problem: why it could not
// be asked; "": it was. Changes the net's inputs.
std::vector<Verification> verify_onnx(Net& net, const ComparedModel& compared,
                                      const std::string& python, int draws,
                                      std::string* python_problem);

}  // namespace crema
