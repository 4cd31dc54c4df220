// LayerRun: one layer of a row prepared on one device, in one dtype and order, with checked memory:
// everything that the layer must write starts as NaN, and every tensor is between guard bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/row.h"

namespace crema {

// With the row's name, its number of bottoms, and tops if it has none.
LayerParameter layer_of(const Row& row);

struct Setting {
  Device device = Device::cpu;
  DType dtype = DType::f64;
  // 16 bits: bottoms, tops and copies of parameters as its LayerTraits::half_rule says; dtype is f32.
  Precision precision = Precision::fp32;
  Order order = Order::row_major;  // of bottoms and tops with three axes and more
  std::string implementation = "plain";
  bool in_place =
      false;  // top[0] in the memory of bottom[0], bottom_diff[0] in that of top_diff[0]
  bool backward = true;
  // Which gradients backward must compute: bit i is for bottom i.
  uint32_t bottoms_wanted = ~0u;
  bool parameters_wanted = true;
  // The gradient of top 0 in as many parts as Prepared::top_edge allows.
  bool parts = false;
  bool padded = false;     // bottom 0 has in memory the channels that padded_channels() asks for
  bool repeatable = true;  // Context::repeatable
  // The context to run in, on that device; none: a new one. Opening a GPU takes longer than a
  // layer.
  std::shared_ptr<Context> context = nullptr;

  std::string str() const;
};

// The numbers that every run of a row starts from, in plain order.
struct Start {
  std::vector<std::vector<double>> bottom, parameter,
      top_diff;  // top_diff: empty for a top without gradient
};

// The results, in plain order; empty if they were not requested.
struct Outcome {
  std::vector<std::vector<double>> top, bottom_diff, parameter, parameter_diff;
  std::vector<std::vector<double>> parameter_after;  // backward, which moves some measured ones
};

class LayerRun {
 public:
  LayerRun(const Row& row, const Setting& setting);
  ~LayerRun();

  const Layer& layer() const { return *layer_; }
  Layer& layer() { return *layer_; }
  Context& context() { return *context_; }
  // The arguments of forward and backward; after backward() it is content as in training.
  const Preparation& preparation() const { return preparation_; }
  const Forward& forward_arguments() const { return forward_; }
  const Backward& backward_arguments() const { return backward_; }
  const std::vector<Shape>& top_shapes() const { return inference_.tops; }
  // The implementations that kernels chose, as their log lines say: "convolution is implemented by
  // onednn".
  const std::string& chosen() const { return log_.chosen; }
  std::vector<int> differentiable_bottoms() const;
  bool top_has_gradient(int top) const;
  // The batch is this part of one that several ranks have together.
  void set_samples(const BatchShare& samples) { forward_.share = backward_.share = samples; }
  // The number of parts that the layer takes of the gradient of top 0.
  int gradient_parts() const { return prepared_.top_edge.gradient_parts; }
  bool adds_gradients() const { return prepared_.adds_gradients; }
  // Bottoms as the row says; parameters by their fillers, or near them where a filler is constant;
  // random top gradients.
  Start make_start() const;

  Outcome forward(const Start& start);
  // The same and then backward, `times` times: all but the first add to the parameter gradients.
  // between: called after each forward.
  Outcome backward(const Start& start, int times = 1, const std::function<void()>& between = {});
  // Bytes written outside of a tensor: "" or which tensor it was.
  std::string broken_guard();

 private:
  struct ChosenLog : Log {
    void write(Severity severity, const std::source_location& where,
               std::string_view line) override;
    std::string chosen;
  };
  struct Guarded {
    std::string what;
    std::shared_ptr<Buffer> memory;
    size_t bytes;
  };

  Tensor allocate(const std::string& what, const Shape& shape, DType dtype,
                  const Format& format = {});
  Format activation_format(const Shape& shape) const;
  DType storage() const;
  DType bottom_dtype(int bottom) const;
  DType top_dtype() const;
  void run_forward(const Start& start);
  void take_shapes();
  bool overwrites_bottom() const;
  BackwardReads reads() const { return prepared_.reads.value_or(layer_->traits().reads); }
  void check_recompute(const Outcome& outcome);
  void write_top_diffs(const Start& start);
  std::vector<Shape> bottom_shapes() const;

  const Row& row_;
  Setting setting_;
  ChosenLog log_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Layer> layer_;
  Inference inference_;
  Preparation preparation_;
  Prepared prepared_;
  std::vector<TensorSpec> saved_;  // of infer and of prepare
  Forward forward_;
  std::vector<Tensor> written_;  // forward_.top, of a dynamic layer in the shapes that came out
  Backward backward_;
  std::vector<Guarded> guarded_;
};

}  // namespace crema
