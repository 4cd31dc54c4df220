// An iteration that is computed layer by layer, so that one can look into it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/png.h"
#include "net/net.h"
#include "solver/solver.h"

namespace crema {

class SampleLosses;

// A sample of the batch. Of iter_size batches, those of the first come first.
struct OpenedSample {
  int64_t number = 0;       // from 0
  std::string record = {};  // "PATH, record 17 (key "cat.jpg")"; "": unknown
  double loss = 0;          // of this sample alone; nan: the losses do not divide into samples
  int64_t label = -1, answer = -1;  // classes, if the net gives one; -1: none
  Picture picture = {};             // no bytes: it is none
  float low = 0, high = 0;          // of its first top's values
};

// What a layer's top holds, of the last batch, and the gradient that reaches it.
struct OpenedBlob {
  std::string layer = {}, type = {}, blob = {}, shape = {};
  double mean = 0, deviation = 0, low = 0, high = 0;  // of finite values
  double zeros = 0;                                   // share of all, 0 to 1
  int64_t not_finite = 0;
  double gradient = 0;                   // its norm; nan: none reaches it
  uint64_t hash = 0, gradient_hash = 0;  // for comparisons bit for bit
};

struct OpenedParameter {
  std::string layer = {}, shape = {};
  int index = 0;
  bool learned = true;
  double norm = 0;      // before the update
  double gradient = 0;  // its norm, before clipping and decay; nan: it has none
  double update = 0;    // the norm of what the update has added
  int64_t not_finite = 0;
  uint64_t gradient_hash = 0, update_hash = 0;  // for comparisons bit for bit
};

// A tensor of the iteration in row-major order.
struct OpenedTensor {
  std::string name;  // "conv1" or "conv1:grad"; "conv1/0" of a parameter, "conv1/0:grad"
  Shape shape;
  std::vector<float> values;
};

struct OpenedIteration {
  int64_t iteration = 0;
  double loss = 0, rate = 0;
  std::vector<OpenedSample> samples;  // highest loss first, if these are known
  std::vector<OpenedBlob> blobs;
  std::vector<OpenedParameter> parameters;
  std::vector<OpenedTensor> tensors;  // that were asked for
};

// Whether the losses divide into samples.
bool knows_losses(const OpenedIteration& opened);

// Error for a name, as in OpenedTensor, that the net does not have.
void check_names(const Net& net, const std::vector<std::string>& dumped);

class IterationOpener {
 public:
  struct Options {
    bool rgb = false;                 // planes of pictures are red, green, blue; else blue first
    std::vector<std::string> dumped;  // names of tensors, as in OpenedTensor
  };
  // The solver must have been made with NetOptions::keep_blobs, and outlive this.
  IterationOpener(Solver& solver, Options options);
  ~IterationOpener();

  // The solver's next iteration. Error for the name of a tensor that the net does not have.
  OpenedIteration open();

 private:
  void look();
  void add_samples(uint64_t pass);
  void add_blobs();
  void add_parameters();
  void dump(const std::string& name);

  Solver& solver_;
  const Options options_;
  std::unique_ptr<SampleLosses> losses_;
  std::vector<std::vector<float>> before_;  // the parameters' values
  OpenedIteration opened_;
};

}  // namespace crema
