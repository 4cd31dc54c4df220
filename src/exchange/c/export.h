// Writes a net as C99: one file and its header, which need nothing but the standard library's mathematics.
#pragma once

#include <string>
#include <vector>

#include "exchange/c/program.h"
#include "exchange/onnx/picture_input.h"
#include "net/net.h"
#include "proto/preparation.pb.h"
#include "proto/solver.pb.h"

namespace crema {

struct COptions {
  bool fold = true;  // BatchNorm, Scale and Bias become part of the convolution before them
  bool weights_file = false;  // the caller passes the weights, which are no constants of the file
};

// What the files say in addition to the net.
struct CAbout {
  std::string model;   // the path of the net's file
  std::string header;  // the name of the header file
  NetPreparation preparation;
  std::vector<std::string> labels;
};

struct CFiles {
  std::string source, header;
  std::string weights;  // bytes, little-endian; empty: they are constants
};

// The net for inference (phase TEST), as export_onnx() takes it, for the batch that it has. `prefix`: an
// identifier, which everything that the files declare begins with. Error with a position for a layer
// that C functions do not compute.
CProgram compile_to_c(Net& net, const std::string& prefix, const COptions& options);

// The same with training. `training`: the net in phase TRAIN with Input layers as its sources, planned
// and with weights like `net`. Error, too, for a solver or a layer that C functions do not train.
CProgram compile_to_c(Net& net, Net& training, const SolverParameter& solver,
                      const std::string& prefix, const COptions& options);

CFiles write_c(const CProgram& program, const COptions& options, const CAbout& about);

// "lenet" of "models/LeNet-5.c" is "lenet_5": a valid identifier in lower case.
std::string c_prefix(const std::string& path);

// The text of the functions that compute nets, in one file, without headers: what write_c() writes for
// each. `weights`: the binary file has them.
std::string c_net_text(const CProgram& program, bool weights_file);

// "const float *data, float *prob", and "const float *data, const float *label, int32_t iteration, float
// learning_rate".
std::string c_parameters(const CProgram& program, bool weights_file);
std::string c_training_parameters(const CProgram& program, bool weights_file);

// A file with a main() that classifies a picture, which it reads and prepares as `picture` says. The
// program has one input, for one picture.
std::string c_main_text(const CProgram& program, const COptions& options, const CAbout& about,
                        const PictureInput& picture);

}  // namespace crema
