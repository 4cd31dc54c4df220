// Random nets with quantization_param in which no result is rounded by chance: steps are powers of two, and every
// value is an integer times one, within 24 bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/dice.h"
#include "tensor/shape.h"

namespace crema::tests {

class QuantizedNet {
 public:
  QuantizedNet(uint64_t seed, uint64_t number);
  // A given one.
  QuantizedNet(std::string text, std::vector<std::string> inputs)
      : dice_({0, 0}), text_(std::move(text)), inputs_(std::move(inputs)), batch_(0) {}
  // A net whose inputs are Input layers.
  const std::string& text() const { return text_; }
  const std::vector<std::string>& inputs() const { return inputs_; }

 private:
  struct Blob {
    std::string name;
    Shape shape;
    int grid = 0;      // values are multiples of 2^-grid
    double bound = 0;  // of magnitudes
    int readers = 0;
  };

  bool maybe(int percent) { return dice_.below(100) < static_cast<size_t>(percent); }
  int between(int low, int high) {
    return low + static_cast<int>(dice_.below(static_cast<size_t>(high - low + 1)));
  }
  int pick() {  // most often a recent blob
    return static_cast<int>(blobs_.size() - 1 -
                            std::min(dice_.below(blobs_.size()), dice_.below(blobs_.size())));
  }
  void add_input();
  void add_layer();
  void convolution(int b);
  void inner_product(int b);
  void pointwise(int b);
  void eltwise(int b);
  void shapes(int b);
  // quantization_param for sums of `terms` products; changes grid and bound of b to those of the sums. "": they
  // would not be exact. any: also some that kernels of float32 compute, which is exact except for windows of 3 x 3
  // (Winograd's algorithm).
  std::string quantization(int64_t terms, int64_t rows, Blob* b, bool any);
  std::string parameters(const std::string& shape, bool bias);
  // Adds the layer if the values of its tops are exact.
  void add(const std::string& type, const std::vector<int>& bottoms, const std::vector<Blob>& tops,
           const std::string& fields, bool in_place = false);

  Dice dice_;
  std::string text_;
  std::vector<std::string> inputs_;
  std::vector<Blob> blobs_;
  std::map<std::string, std::vector<std::string>> weights_;  // names by shape
  int layers_ = 0, names_ = 0;
  int64_t batch_;
};

}  // namespace crema::tests
