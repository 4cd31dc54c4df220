// Verification of written models: the same inputs through Crema and through other runtimes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/onnx/export.h"
#include "tools/exchange/blob_differences.h"

namespace crema {

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
      values;              // of the net's graph (by index), with their names in the model
  PictureInputs pictures;  // inputs that the model prepares itself
  std::map<std::string, std::string> inputs;  // blobs that the model calls otherwise
  std::set<std::string> bytes_of;             // inputs of whole numbers from 0 to 255
  std::map<int, std::string> makers;          // of a Caffe net's values: the layers that make them
};

struct VerificationOptions {
  std::string python;  // the program in which runtimes are looked for
  int draws = 1;       // of random inputs
  // A folder for inputs and the net's results, as ONNX's test data; "": they are not kept.
  std::string proof;
};

// Runs the model in each runtime, and compares those blobs. Empty: there is none. python_problem: why
// Python could not be asked; "": it was. Changes the net's inputs.
std::vector<Verification> verify_model(Net& net, const ComparedModel& compared,
                                       const VerificationOptions& options,
                                       std::string* python_problem);

// The same with a net that was read from the written files.
Verification verify_net(Net& net, Net& again, const ComparedModel& compared, int draws);

}  // namespace crema
