// An imported net as a file for training.
#pragma once

#include <string>

#include "exchange/onnx/import.h"

namespace crema {

// The net's layers between data layers, which read databases that $train and $test name, and a
// softmax loss with the accuracy. Pictures are prepared as the model's metadata says. Error unless
// the net has one input, and one output with a score for each class of each sample.
std::string training_text(const ImportedNet& imported, const OnnxFile& file);

}  // namespace crema
