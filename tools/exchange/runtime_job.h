// Runs a written model in the runtimes of a Python, through run_onnx.py.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// A name as a field of a file whose columns are separated by tabs: \\, \t, \n and \r are escaped.
std::string field_text(const std::string& name);

// What one runtime said.
struct RuntimeAnswer {
  std::string runtime, version;
  std::string problem;  // why it could not run the model; "": it ran
  std::string file;     // of the values
};

// A model with inputs, in a folder that is removed with the job.
class RuntimeJob {
 public:
  explicit RuntimeJob(int draws);
  ~RuntimeJob();
  RuntimeJob(const RuntimeJob&) = delete;
  RuntimeJob& operator=(const RuntimeJob&) = delete;

  // Either an ONNX model, as a file or as bytes, or a Caffe net with its weights.
  void set_onnx(const std::string& path);
  void set_onnx_bytes(const std::string& bytes);
  void set_caffe(const std::string& net, const std::string& weights);

  void add_input(const std::string& name, const Shape& shape);
  // `layer`, of a Caffe net: the layer that makes it.
  void add_output(const std::string& name, const std::string& layer = "");

  // The values of an input; draw by draw, in the order of add_input().
  void add_values(const std::vector<float>& values);

  // Asks the runtimes of the program `python`. python_problem: why it could not be asked; "": it was.
  std::vector<RuntimeAnswer> run(const std::string& python, std::string* python_problem);

  // Calls `take` with the values of each output, draw by draw; empty: there are none.
  void read(const RuntimeAnswer& answer,
            const std::function<void(int draw, int output, const std::vector<float>&)>& take) const;

 private:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void add_line(const std::vector<std::string>& fields);
  // Some converters number inputs and outputs in the order in which the model has them.
  void add_order(const std::string& path);

  const std::string folder_;
  const int draws_;
  int outputs_ = 0;
  std::string lines_, values_;
};

}  // namespace crema
