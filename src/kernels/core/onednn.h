// oneDNN in Crema's terms. The differences between versions 2 and 3 are handled here and in
// onednn.cpp, nowhere else. Only for files of a build with oneDNN (*_onednn.cpp).
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace crema::onednn {

// The CPU engine and a stream on it: cheap, so each kernel object holds its own. Work on the stream
// is done when the call that queues it returns.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

using Desc = dnnl::memory::desc;

// oneDNN counts in 32 bits inside an image and inside weights, and some of its generated code grows
// with an image's width: for larger tensors it divides by zero, leaves its memory, or does not
// return. The reason not to pass it activations (N, C, ...), or weights, of this shape; "" if it
// may have them.
std::string too_large(const Shape& activations);
std::string too_large_weights(const Shape& weights);

// oneDNN's description of a tensor. Empty (is_zero()) for a blocked format that oneDNN 3 has no
// name for.
Desc describe(const Shape& shape, DType dtype, const Format& format);
// Lets oneDNN choose the layout.
Desc describe_any(const Shape& shape, DType dtype);
// Weights (O, C/groups, kernel...): with groups they are described as (groups, O/groups, C/groups,
// kernel...).
Desc describe_weights(const Shape& shape, const Format& format, int64_t groups);
Desc describe_any_weights(const Shape& shape, int64_t groups);
// The same of 8-bit integers. Those of weights have a sign; describe_integer_weights() is row-major.
Desc describe_integers(const Shape& shape, bool is_signed, const Format& format);
Desc describe_integer_weights(const Shape& shape, int64_t groups);
Desc describe_any_integer_weights(const Shape& shape, int64_t groups);
// The inverse; none when the layout cannot be expressed in terms of the shape's axes.
std::optional<Format> weights_format(const Desc& desc, const Shape& shape, int64_t groups);

// A text that is equal for equal layouts of one shape.
std::string name_of_layout(const Desc& desc);

// The primitive descriptor of one operation: `arguments` as in oneDNN's documentation, without
// engine and attributes. Empty (false) when oneDNN does not support the case. Operation is a
// primitive class such as dnnl::convolution_forward.
template <typename Operation, typename... Arguments>
typename Operation::primitive_desc plan(const Engine& on, const dnnl::primitive_attr& attributes,
                                        const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return
      typename Operation::primitive_desc(on.engine, arguments..., attributes, /*allow_empty=*/true);
#else
  return typename Operation::primitive_desc(typename Operation::desc(arguments...), attributes,
                                            on.engine,
                                            /*allow_empty=*/true);
#endif
}

// The same for a backward operation; `forward` is the descriptor of its forward operation.
template <typename Operation, typename Forward, typename... Arguments>
typename Operation::primitive_desc plan_backward(const Engine& on,
                                                 const dnnl::primitive_attr& attributes,
                                                 const Forward& forward,
                                                 const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Operation::primitive_desc(on.engine, arguments..., forward, attributes,
                                            /*allow_empty=*/true);
#else
  return typename Operation::primitive_desc(typename Operation::desc(arguments...), attributes,
                                            on.engine, forward,
                                            /*allow_empty=*/true);
#endif
}

// Attributes of an operation whose scratch memory comes from a planned workspace
// (DNNL_ARG_SCRATCHPAD).
dnnl::primitive_attr attributes();
// ... and that ends with y = max(y, 0) + slope * min(y, 0).
dnnl::primitive_attr attributes_with_relu(float slope);
// ... and that adds a tensor (DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1), then ends as the one
// before if there is a slope.
dnnl::primitive_attr attributes_with_sum(const Desc& added, std::optional<float> slope);
// Attributes of a convolution of integers whose sums are multiplied by a factor for each output channel
// before a bias is added; `added`, unless it is empty, and `slope` as above. oneDNN 3 takes the factors
// as an argument, kFactors, of each run; oneDNN 2 multiplies the bias by them, too.
dnnl::primitive_attr attributes_of_integers(const std::vector<float>& factors, int64_t groups,
                                            const Desc& added, std::optional<float> slope);
#if DNNL_VERSION_MAJOR >= 3
constexpr int kFactors = DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS;
constexpr bool kFactorsMultiplyBias = false;
#else
constexpr int kFactors = 0;  // no argument
constexpr bool kFactorsMultiplyBias = true;
#endif
// Attributes of an operation that adds to what the output holds. Its scratch memory is oneDNN's own
// (library mode), unlike that of the others: reorder_call() passes none.
dnnl::primitive_attr attributes_that_add();

// A primitive with its memory objects; the addresses are passed to each run. Arguments without
// memory (an empty Desc) are left out.
class Call {
 public:
  Call() = default;
  Call(const Engine& on, dnnl::primitive primitive,
       const std::vector<std::pair<int, Desc>>& arguments);
  explicit operator bool() const { return !memory_.empty(); }
  // Runs with the address of each argument (DNNL_ARG_...).
  void run(Engine& on, std::initializer_list<std::pair<int, void*>> addresses);

 private:
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> memory_;
};

// A reorder primitive: DNNL_ARG_FROM, DNNL_ARG_TO. add: to += from.
Call reorder_call(const Engine& on, const Desc& from, const Desc& to, bool add = false);

// Turns weights (O, I, kernel...) into those of the convolution that computes the data gradient
// from the output's: (I, O, kernel...) with the taps reversed; with groups both have a leading
// groups axis.
class Mirror {
 public:
  // None when oneDNN cannot describe the layout of one tap.
  static std::optional<Mirror> make(const Engine& on, const Desc& from, const Desc& to,
                                    bool groups);
  void run(Engine& on, void* from, void* to);

 private:
  Call tap_;
  std::vector<std::pair<size_t, size_t>> offsets_;  // of each tap in both, in bytes
};

}  // namespace crema::onednn
