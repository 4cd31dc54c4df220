#include "fuzz/quantized_net.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace crema::tests {
namespace {

constexpr int64_t kMaxCount = 20000;  // elements of a blob

std::string dims(const Shape& shape) {
  std::string text;
  for (const int64_t dim : shape.dims()) text += cat(" dim: ", dim);
  return text;
}

// As quantized_nets_test.cpp fills parameters: weights are multiples of 1/256 up to 1, others of 1/8 up to 2.
constexpr int kWeightGrid = 8, kBiasGrid = 3;
constexpr double kBias = 2;

bool is_exact(int grid, double bound) { return bound * std::ldexp(1.0, grid) <= (1 << 23); }

}  // namespace

QuantizedNet::QuantizedNet(uint64_t seed, uint64_t number)
    : dice_({seed, number}), batch_(between(1, 6)) {
  for (int more = between(1, 2); more > 0; --more) add_input();
  for (int more = between(3, 22); more > 0; --more) add_layer();
}

void QuantizedNet::add_input() {
  const int channels[] = {1, 2, 3, 4, 8, 16, 17, 24, 32, 48};
  const int kind = between(0, 9);
  Shape shape{batch_, channels[between(0, 9)]};
  for (int axes = kind < 7 ? 2 : kind < 8 ? 1 : 3; axes > 0; --axes)
    shape.push_back(between(3, kind < 9 ? 12 : 6));
  const std::string name = cat("x", inputs_.size());
  text_ += cat("layer { name: '", name, "' type: 'Input' top: '", name, "' input_param { shape {",
               dims(shape), " } } }\n");
  inputs_.push_back(name);
  blobs_.push_back({name, shape, 6, 4});
}

void QuantizedNet::add_layer() {
  const int b = pick(), kind = between(0, 99);
  if (kind < 52) return convolution(b);
  if (kind < 57) return inner_product(b);
  if (kind < 77) return pointwise(b);
  if (kind < 87) return eltwise(b);
  shapes(b);
}

void QuantizedNet::add(const std::string& type, const std::vector<int>& bottoms,
                       const std::vector<Blob>& tops, const std::string& fields, bool in_place) {
  for (const Blob& top : tops) {
    if (!is_exact(top.grid, top.bound) || top.shape.count() > kMaxCount || top.shape.count() == 0)
      return;
  }
  text_ += cat("layer { name: 'l", layers_, "' type: '", type, "'");
  for (const int b : bottoms) {
    text_ += cat(" bottom: '", blobs_[b].name, "'");
    ++blobs_[b].readers;
  }
  for (size_t i = 0; i < tops.size(); ++i) {
    Blob top = tops[i];
    top.readers = 0;
    if (in_place) {
      top.name = blobs_[bottoms[0]].name;
      blobs_[bottoms[0]] = top;
    } else {
      top.name = cat("b", layers_, "_", i);
      blobs_.push_back(top);
    }
    text_ += cat(" top: '", top.name, "'");
  }
  // In phase TEST a blob with a loss weight is a result.
  if (tops.size() == 1 && maybe(2)) text_ += " loss_weight: 0.5";
  text_ += cat(" ", fields, " }\n");
  ++layers_;
}

std::string QuantizedNet::quantization(int64_t terms, int64_t rows, Blob* b, bool any) {
  const bool rounds_x = !any || maybe(92), rounds_w = !any || maybe(92);
  const int bits_x = maybe(85) ? 8 : between(3, 8), bits_w = maybe(85) ? 8 : between(3, 8);
  const bool has_sign = maybe(50);
  // Few different steps, so that readers often agree.
  const int x = between(3, 5), w = maybe(70) ? 6 : between(4, 8);
  std::string text = "quantization_param {";
  double largest_x = b->bound, largest_w = 1;
  int grid_x = b->grid, grid_w = kWeightGrid;
  if (rounds_x) {
    text += cat(" bw_layer_in: ", bits_x);
    if (has_sign && maybe(30)) {
      text += cat(" fl_layer_in: ", x);
    } else {
      text += cat(" scale_in: ", 1 << x, has_sign ? " is_negative_input: true" : "");
    }
    grid_x = x;
    largest_x = std::min(b->bound + 1, std::ldexp(1.0, has_sign ? bits_x - 1 - x : bits_x - x));
  }
  if (rounds_w) {
    text += cat(" bw_params: ", bits_w);
    grid_w = w;
    if (maybe(15)) {
      text += cat(" fl_params: ", w);
    } else if (maybe(25)) {
      for (int64_t row = 0; row < rows; ++row) {
        const int own = between(4, 7);
        text += cat(" scale_params: ", 1 << own);
        grid_w = std::max(grid_w, own);
      }
    } else {
      text += cat(" scale_params: ", 1 << w);
    }
  }
  const double bound = static_cast<double>(terms) * largest_x * largest_w;
  if (!is_exact(grid_x + grid_w, bound)) return "";
  b->grid = std::max(grid_x + grid_w, kBiasGrid);
  b->bound = bound + kBias;
  if (any && maybe(5)) {
    const int y = between(2, 5);
    text += cat(" bw_layer_out: 8 fl_layer_out: ", y);
    b->grid = y;
  }
  return text + " }";
}

std::string QuantizedNet::parameters(const std::string& shape, bool bias) {
  std::vector<std::string>& known = weights_[shape];
  const int number = names_++;
  std::string name = cat("w", number);
  if (!known.empty() && maybe(30)) {
    name = dice_.pick(known);
  } else {
    known.push_back(name);
  }
  return cat(" param { name: '", name, "' }",
             bias ? cat(" param { name: '", maybe(50) ? cat("b", number) : name, "b' }") : "");
}

void QuantizedNet::convolution(int b) {
  const Shape& shape = blobs_[b].shape;
  if (shape.axes() < 3) return;
  const int64_t channels = shape[1];
  const bool depthwise = maybe(20);
  const int outputs[] = {1, 3, 4, 8, 12, 16, 20, 24, 32, 48};
  int64_t groups = depthwise ? channels : 1, output = depthwise ? channels : outputs[between(0, 9)];
  if (!depthwise && maybe(25)) {
    groups = between(2, 4);
    output = groups * between(1, 10);
    if (channels % groups != 0) return;
  }
  if (maybe(25)) {  // so that sums and shared weights fit
    output = channels;
    if (output % groups != 0) return;
  }
  Blob top = blobs_[b];
  std::string fields = cat("num_output: ", output, depthwise ? "" : cat(" group: ", groups)),
              weights = cat(output, " ", channels / groups);
  const bool uniform = maybe(80);
  int kernel = maybe(45) ? 1 : between(1, 3), stride = maybe(75) ? 1 : 2,
      pad = maybe(50) ? kernel / 2 : between(0, 2), dilation = maybe(85) ? 1 : 2;
  int64_t terms = channels / groups, largest = 1;
  top.shape[1] = output;
  for (int axis = 2; axis < shape.axes(); ++axis) {
    if (!uniform) {
      kernel = between(1, 3), stride = maybe(75) ? 1 : 2, pad = between(0, 2);
      dilation = maybe(85) ? 1 : 2;
    }
    const int64_t room = shape[axis] + 2 * pad - dilation * (kernel - 1) - 1;
    if (room < 0) return;
    top.shape[axis] = room / stride + 1;
    terms *= kernel;
    largest = std::max<int64_t>(largest, kernel);
    weights += cat(" ", kernel);
    fields +=
        cat(" kernel_size: ", kernel, " stride: ", stride, " pad: ", pad, " dilation: ", dilation);
  }
  const bool bias = maybe(70);
  std::vector<int> bottoms = {b};
  if (maybe(4)) {
    for (int other = 0; other < static_cast<int>(blobs_.size()); ++other) {
      if (other != b && blobs_[other].shape == shape && bottoms.size() < 2) {
        bottoms.push_back(other);
        top.grid = std::max(top.grid, blobs_[other].grid);
        top.bound = std::max(top.bound, blobs_[other].bound);
      }
    }
  }
  std::string rounding;
  if (maybe(92)) {
    rounding = quantization(terms, output, &top, largest < 3);
    if (rounding.empty()) return;
  } else if (largest < 3) {
    top.grid += kWeightGrid;
    top.bound = static_cast<double>(terms) * top.bound + kBias;
  } else {
    return;
  }
  const std::string type =
      depthwise ? (maybe(50) ? "ConvolutionDepthwise" : "DepthwiseConvolution") : "Convolution";
  add(type, bottoms, std::vector<Blob>(bottoms.size(), top),
      cat("convolution_param { ", fields, bias ? "" : " bias_term: false", " } ", rounding,
          parameters(weights, bias)));
  if (maybe(45)) pointwise(static_cast<int>(blobs_.size()) - 1);
}

void QuantizedNet::inner_product(int b) {
  if (blobs_[b].shape.axes() < 2) return;
  Blob top = blobs_[b];
  const int64_t inputs = top.shape.count(1), outputs = between(1, 20);
  top.shape = {batch_, outputs};
  const std::string rounding = quantization(inputs, outputs, &top, true);
  if (rounding.empty()) return;
  add("InnerProduct", {b}, {top},
      cat("inner_product_param { num_output: ", outputs, " } ", rounding,
          parameters(cat(outputs, " ", inputs), true)));
}

void QuantizedNet::pointwise(int b) {
  Blob top = blobs_[b];
  const bool in_place = top.readers == 0 ? maybe(80) : maybe(5);
  const int kind = between(0, 9);
  if (kind < 6) {
    const char* const slopes[] = {"0", "0.5", "0.25"};
    const int slope = maybe(70) ? 0 : between(1, 2);
    top.grid += slope;
    return add("ReLU", {b}, {top}, cat("relu_param { negative_slope: ", slopes[slope], " }"),
               in_place);
  }
  if (kind < 7) return add("Dropout", {b}, {top}, "", in_place);
  if (kind < 8) {
    ++top.grid;
    return add("Power", {b}, {top}, "power_param { scale: 0.5 }", in_place);
  }
  if (kind < 9) {
    top.grid += kBiasGrid;
    top.bound = top.bound * 2 + kBias;
    return add("Scale", {b}, {top}, "scale_param { bias_term: true }", in_place);
  }
  add("AbsVal", {b}, {top}, "", in_place);
}

void QuantizedNet::eltwise(int b) {
  std::vector<int> found;
  for (int other = 0; other < static_cast<int>(blobs_.size()); ++other) {
    if (blobs_[other].shape == blobs_[b].shape && (other != b || maybe(5))) found.push_back(other);
  }
  if (found.empty()) return convolution(b);
  const int other = dice_.pick(found);
  Blob top = blobs_[b];
  const bool sum = maybe(80);
  top.grid = std::max(top.grid, blobs_[other].grid);
  top.bound = sum ? top.bound + blobs_[other].bound : std::max(top.bound, blobs_[other].bound);
  add("Eltwise", {b, other}, {top}, sum ? "" : "eltwise_param { operation: MAX }");
  if (maybe(40)) pointwise(static_cast<int>(blobs_.size()) - 1);
}

void QuantizedNet::shapes(int b) {
  Blob top = blobs_[b];
  const int kind = between(0, 11);
  if (kind < 4) {
    if (top.shape.axes() != 4) return;
    for (int axis = 2; axis < 4; ++axis) top.shape[axis] = (top.shape[axis] + 1) / 2;
    const bool mean = maybe(50);
    if (mean) top.grid += 2;
    add("Pooling", {b}, {top},
        cat("pooling_param { kernel_size: 2 stride: 2 pool: ", mean ? "AVE" : "MAX", " }"));
  } else if (kind < 6) {
    for (int other = 0; other < static_cast<int>(blobs_.size()); ++other) {
      Shape same = blobs_[other].shape;
      if (same.axes() != top.shape.axes()) continue;
      same[1] = top.shape[1];
      if (same != top.shape || (other == b && !maybe(10))) continue;
      top.shape[1] += blobs_[other].shape[1];
      top.grid = std::max(top.grid, blobs_[other].grid);
      top.bound = std::max(top.bound, blobs_[other].bound);
      return add("Concat", {b, other}, {top}, "");
    }
  } else if (kind < 8) {
    if (top.shape[1] < 2) return;
    Blob rest = top;
    top.shape[1] = between(1, static_cast<int>(top.shape[1]) - 1);
    rest.shape[1] -= top.shape[1];
    add("Slice", {b}, {top, rest}, cat("slice_param { slice_point: ", top.shape[1], " }"));
  } else if (kind < 9) {
    add("Split", {b}, {top, top}, "");
  } else if (kind < 10) {
    top.shape = {batch_, top.shape.count(1)};
    add("Flatten", {b}, {top}, "");
  } else if (kind < 11) {
    const int64_t channels = top.shape[1];
    if (channels % 2 == 0) add("ShuffleChannel", {b}, {top}, "shuffle_channel_param { group: 2 }");
  } else if (top.shape.axes() == 4) {
    for (int axis = 2; axis < 4; ++axis) top.shape[axis] *= 2;
    top.grid += kWeightGrid;
    top.bound += kBias;
    add("Deconvolution", {b}, {top},
        cat("convolution_param { num_output: ", top.shape[1], " group: ", top.shape[1],
            " kernel_size: 2 stride: 2 }"));
  }
}

}  // namespace crema::tests
