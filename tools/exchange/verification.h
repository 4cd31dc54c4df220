// Verification of an exported model: the same inputs through Crema and through other runtimes.
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx/export.h"
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

// Runs the model with `draws` random inputs in each runtime that `python` (a program) has, and compares
// every blob that model and net have in common. Empty: it has none. python_problem: why it could not
// be asked; "": it was. Changes the net's inputs.
std::vector<Verification> verify_onnx(Net& net, const OnnxModel& exported,
                                      const std::string& python, int draws,
                                      std::string* python_problem);

}  // namespace crema
