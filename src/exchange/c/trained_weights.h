// The weights that training in C changes: which these are, and their way back from a device.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"
#include "tensor/shape.h"

namespace crema {

// A parameter that training changes.
struct CTrainedParameter {
  std::string key;  // parameter_key()
  Shape shape;
  std::vector<float> values;
  float lr_mult = 1, decay_mult = 1;
  bool measured = false;  // the forward pass writes it, as BatchNorm does its statistics
};

// Those of a net in phase TRAIN, in its order, as weights files have them. Error if there are none.
std::vector<CTrainedParameter> trained_parameters(const Net& net);

// The value that a program has behind its trained weights. It tells whose these are: a whole number below
// 2^24, which depends on the names and shapes of the parameters.
float mark_of(const std::vector<CTrainedParameter>& trained);

// Puts what a program has stored into the net with which it was compiled: the array of trained weights, or
// the file of all weights, which begins with them; little-endian float32. Error if the file is too short,
// has weights of other layers, or values that are not finite.
void load_trained_weights(const std::string& path, Net& training);

}  // namespace crema
