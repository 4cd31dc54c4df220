// OnnxGraph: a graph of ONNX operators under construction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/onnx.pb.h"

namespace crema {

// A setting of an operator.
struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>> value;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

// A factor and a shift for each channel, axis 1: what BatchNorm and Scale compute in inference. It
// becomes part of the convolution before it, or Mul and Add.
struct ChannelLine {
  std::vector<double> factor, shift;
};

class OnnxGraph {
 public:
  explicit OnnxGraph(int opset) : opset_(opset) {}
  int opset() const { return opset_; }

  // A name that no value has yet: `wish` or, if that is taken, with a number behind it.
  std::string unique(const std::string& wish);
  // Keeps a name for the value that has it in the net.
  void reserve(const std::string& name) { names_.insert(name); }

  // Adds an operator. Later nodes get this name and position in their doc_string.
  onnx::NodeProto* add(const std::string& op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const OnnxAttributes& attributes = {});
  void at(const std::string& layer, const std::string& where);
  // Ends the layer: of its operators the last one gets the layer's name, the others have numbers.
  void end_layer();
  // Adds factor * input + shift along axis 1 of a value with so many axes.
  void add_line(const std::string& input, const std::string& output, int axes, ChannelLine line);

  // Add constants; the results are their names. An empty shape is a scalar.
  std::string floats(const std::string& wish, const std::vector<int64_t>& shape,
                     std::vector<float> values);
  // The same constant for all that ask for it by this name and shape; values: called for the first.
  std::string shared_floats(const std::string& wish, const std::vector<int64_t>& shape,
                            const std::function<std::vector<float>()>& values);
  // Training changes this constant, the parameter of this key: nothing is folded into it.
  void set_trained(const std::string& constant, const std::string& key) {
    trained_[constant] = key;
  }
  const std::map<std::string, std::string>& trained() const { return trained_; }
  // A vector, or with `scalar` its only element.
  std::string ints(const std::string& wish, const std::vector<int64_t>& values,
                   bool scalar = false);
  // Integers of another type: INT8, UINT8 or INT32.
  std::string integers(const std::string& wish, const std::vector<int64_t>& shape,
                       std::vector<int64_t> values, onnx::TensorProto::DataType type);
  // The name of a value that several layers ask for by this key; "" for the first, which sets it.
  std::string& shared_value(const std::string& key) { return shared_values_[key]; }

  // Removes operators that only pass their input on, unless it and their output are both in `kept`
  // or constants. Of two names for a value the later one stays, unless only the earlier is kept.
  void drop_identities(const std::set<std::string>& kept);
  // Merges lines with each other and with the operator before them, whose result nothing else may
  // read. Names in `kept` stay.
  void fold_lines(const std::set<std::string>& kept);
  // The nodes and the constants that they read, in order. Lines become operators.
  void write(onnx::GraphProto* graph);

 private:
  struct Step {
    onnx::NodeProto node;
    ChannelLine line;  // instead of an operator; empty: `node` is one
    int axes = 0;
    bool is_line() const { return !line.factor.empty(); }
  };
  struct Constant {
    std::vector<int64_t> shape;
    std::vector<float> floats;
    std::vector<int64_t> ints;
    onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT;
  };
  // readers: how many nodes read each value, before anything was folded.
  bool fold_into(Step* before, const Step& line, const std::map<std::string, int>& readers);
  void write_line(const Step& step, onnx::GraphProto* graph);
  void write_constant(const std::string& name, const Constant& constant, onnx::GraphProto* graph);

  const int opset_;
  std::set<std::string> names_;
  std::vector<Step> steps_;
  std::map<std::string, Constant> constants_;
  std::map<std::pair<std::string, std::vector<int64_t>>, std::string> shared_;
  std::map<std::string, std::string> shared_values_, trained_;
  std::string layer_, where_;
  std::map<std::string, int> nodes_of_layer_;
};

}  // namespace crema
