// Convolution of 3 x 3 windows by Winograd's algorithm, on the CPU, channels-last, for plans without
// gradients. The tiles of 4 x 4 results are computed in pieces that fit into a cache: the input is
// transformed, oneDNN multiplies for each of the 36 points the tiles by the weights, and the products
// are transformed back. The weights are transformed once (pack()).
#include <algorithm>
#include <cstring>

#include "base/ceil_div.h"
#include "base/system.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/winograd.h"
#include "kernels/core/onednn.h"

namespace crema {
namespace {

using winograd::kInput;
using winograd::kOutput;
using winograd::kPoints;

constexpr int kLanes = 16;  // channels that are transformed together
using Lanes __attribute__((vector_size(kLanes * sizeof(float)))) = float;

Lanes load_lanes(const float* from, int64_t count) {
  Lanes lanes{};
  if (count >= kLanes) {
    std::memcpy(&lanes, from, sizeof lanes);
  } else {
    std::memcpy(&lanes, from, static_cast<size_t>(count) * sizeof(float));
  }
  return lanes;
}

void store_lanes(float* to, const Lanes& lanes, int64_t count) {
  if (count >= kLanes) {
    std::memcpy(to, &lanes, sizeof lanes);
  } else {
    std::memcpy(to, &lanes, static_cast<size_t>(count) * sizeof(float));
  }
}

struct Tiles {
  int64_t images, rows, columns;  // of tiles
  explicit Tiles(const ConvCase& c)
      : images(c.y[0]), rows(ceil_div(c.y[2], kOutput)), columns(ceil_div(c.y[3], kOutput)) {}
  int64_t count() const { return images * rows * columns; }
};

class WinogradConv final : public LinearKernel {
 public:
  explicit WinogradConv(const ConvCase& c) : c_(c), tiles_(c), inputs_(c.x[1]), outputs_(c.w[0]) {
    // Tiles of a piece: enough to read the weights seldom.
    constexpr int64_t kPieceBytes = 4 << 20, kFewestTiles = 64;
    const int64_t bytes = kPoints * (inputs_ + outputs_) * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max(kPieceBytes / bytes, kFewestTiles);
    piece_ = ceil_div(tiles_.count(), ceil_div(tiles_.count(), most));
    values_bytes_ = aligned(static_cast<size_t>(kPoints * piece_ * inputs_) * sizeof(float));
    products_bytes_ = aligned(static_cast<size_t>(kPoints * piece_ * outputs_) * sizeof(float));
  }

  bool prepare(std::string& reason) {
    const int64_t rest = tiles_.count() % piece_;
    return prepare(piece_, whole_, reason) && (rest == 0 || prepare(rest, last_, reason));
  }

  size_t workspace() const override { return values_bytes_ + products_bytes_ + scratch_bytes_; }
  LinearKernelFeatures features() const override { return {.sum = true}; }
  PackedForm packed_form() const override {
    return {"winograd 4x4", static_cast<size_t>(kPoints * inputs_ * outputs_) * sizeof(float)};
  }

  // To [point][input][output].
  void pack(Context&, const Tensor& w, const Tensor& packed) const override {
    const float* const from = w.data<float>();
    float* const to = reinterpret_cast<float*>(packed.data<char>());
#pragma omp parallel for schedule(static)
    for (int64_t input = 0; input < inputs_; ++input) {
      for (int64_t output = 0; output < outputs_; output += kLanes) {
        const int64_t count = std::min<int64_t>(kLanes, outputs_ - output);
        float numbers[9][kLanes] = {};
        for (int64_t lane = 0; lane < count; ++lane) {
          const float* const window = from + ((output + lane) * inputs_ + input) * 9;
          for (int i = 0; i < 9; ++i) numbers[i][lane] = window[i];
        }
        std::array<std::array<Lanes, 3>, 3> windows;
        std::memcpy(&windows, numbers, sizeof windows);
        std::array<std::array<Lanes, kInput>, kInput> made;
        winograd::of_both_axes(windows, made, winograd::of_weights<Lanes>);
        for (int point = 0; point < kPoints; ++point) {
          store_lanes(to + (point * inputs_ + input) * outputs_ + output,
                      made[point / kInput][point % kInput], count);
        }
      }
    }
  }

  void forward(Context&, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    run(x, w, b, Tensor(), c_.relu, y, workspace);
  }
  void forward_with_sum(Context&, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    run(x, w, b, added, relu, y, workspace);
  }
  void backward_data(Context&, const OutputGradient&, const Tensor&, const Tensor&,
                     const Tensor&) override {
    fail("Winograd's convolution computes no gradients");
  }
  void backward_weights(Context&, const Tensor&, const OutputGradient&, const Tensor&,
                        const Tensor&, bool, bool, const Tensor&) override {
    fail("Winograd's convolution computes no gradients");
  }

 private:
  // For so many tiles.
  bool prepare(int64_t tiles, onednn::Call& multiply, std::string& reason) {
    const auto describe = [](int64_t rows, int64_t columns) {
      return onednn::describe({kPoints, rows, columns}, DType::f32, {});
    };
    const onednn::Desc values = describe(tiles, inputs_), weights = describe(inputs_, outputs_),
                       products = describe(tiles, outputs_);
    const auto plan =
        onednn::plan<dnnl::matmul>(on_, onednn::attributes(), values, weights, products);
    if (!plan || std::strstr(plan.impl_info_str(), "ref")) {
      reason = "oneDNN has no fast product for it";
      return false;
    }
    multiply = onednn::Call(on_, dnnl::matmul(plan),
                            {{DNNL_ARG_SRC, values},
                             {DNNL_ARG_WEIGHTS, weights},
                             {DNNL_ARG_DST, products},
                             {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc()}});
    scratch_bytes_ = std::max(scratch_bytes_, plan.scratchpad_desc().get_size());
    return true;
  }

  void run(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& added, Relu relu,
           const Tensor& y, const Tensor& workspace) {
    char* const memory = workspace.data<char>();
    float* const values = reinterpret_cast<float*>(memory);
    float* const products = reinterpret_cast<float*>(memory + values_bytes_);
    const Epilogue end{b ? b.data<float>() : nullptr, added ? added.data<float>() : nullptr,
                       relu.on ? static_cast<float>(relu.slope) : 1};
    for (int64_t first = 0; first < tiles_.count(); first += piece_) {
      const int64_t count = std::min(piece_, tiles_.count() - first);
      transform_input(x.data<float>(), first, count, values);
      (count == piece_ ? whole_ : last_)
          .run(on_, {{DNNL_ARG_SRC, values},
                     {DNNL_ARG_WEIGHTS, w.raw()},
                     {DNNL_ARG_DST, products},
                     {DNNL_ARG_SCRATCHPAD, memory + values_bytes_ + products_bytes_}});
      transform_products(products, first, count, end, y.data<float>());
    }
  }

  // body(tile of the piece, image, row and column of its first result, first channel), for blocks
  // of kLanes channels.
  template <typename Body>
  void for_tiles(int64_t first, int64_t count, int64_t channels, const Body& body) const {
    const int64_t blocks = ceil_div(channels, kLanes);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t tile = 0; tile < count; ++tile) {
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t at = first + tile, column = at % tiles_.columns,
                      row = at / tiles_.columns % tiles_.rows;
        body(tile, at / tiles_.columns / tiles_.rows, row * kOutput, column * kOutput,
             block * kLanes);
      }
    }
  }

  // To [point][tile][channel].
  void transform_input(const float* x, int64_t first, int64_t count, float* values) const {
    const int64_t height = c_.x[2], width = c_.x[3];
    for_tiles(first, count, inputs_,
              [&](int64_t tile, int64_t image, int64_t row, int64_t column, int64_t channel) {
                const int64_t lanes = inputs_ - channel;
                std::array<std::array<Lanes, kInput>, kInput> patch, made;
                for (int i = 0; i < kInput; ++i) {
                  for (int j = 0; j < kInput; ++j) {
                    const int64_t at_y = row - c_.pad[0] + i, at_x = column - c_.pad[1] + j;
                    const bool inside = at_y >= 0 && at_y < height && at_x >= 0 && at_x < width;
                    const float* const from =
                        x + ((image * height + at_y) * width + at_x) * inputs_ + channel;
                    patch[i][j] = inside ? load_lanes(from, lanes) : Lanes{};
                  }
                }
                winograd::of_both_axes(patch, made, winograd::of_input<Lanes>);
                float* const to = values + tile * inputs_ + channel;
                for (int point = 0; point < kPoints; ++point)
                  store_lanes(to + point * count * inputs_, made[point / kInput][point % kInput],
                              lanes);
              });
  }

  struct Epilogue {
    const float *bias, *added;  // null: none
    float slope;                // of negative results; 1: no ReLU
  };

  void transform_products(const float* products, int64_t first, int64_t count, const Epilogue& end,
                          float* y) const {
    const int64_t height = c_.y[2], width = c_.y[3];
    for_tiles(first, count, outputs_,
              [&](int64_t tile, int64_t image, int64_t row, int64_t column, int64_t channel) {
                const int64_t lanes = outputs_ - channel;
                const float* const from = products + tile * outputs_ + channel;
                std::array<std::array<Lanes, kInput>, kInput> points;
                for (int point = 0; point < kPoints; ++point)
                  points[point / kInput][point % kInput] =
                      load_lanes(from + point * count * outputs_, lanes);
                std::array<std::array<Lanes, kOutput>, kOutput> made;
                winograd::of_both_axes(points, made, winograd::of_products<Lanes>);
                const Lanes bias = end.bias ? load_lanes(end.bias + channel, lanes) : Lanes{};
                for (int i = 0; i < kOutput && row + i < height; ++i) {
                  for (int j = 0; j < kOutput && column + j < width; ++j) {
                    const int64_t at =
                        ((image * height + row + i) * width + column + j) * outputs_ + channel;
                    Lanes value = made[i][j] + bias;
                    if (end.added) value += load_lanes(end.added + at, lanes);
                    if (end.slope != 1) value = value > 0 ? value : value * end.slope;
                    store_lanes(y + at, value, lanes);
                  }
                }
              });
  }

  ConvCase c_;
  Tiles tiles_;
  int64_t inputs_, outputs_;
  int64_t piece_ = 0;  // tiles that are computed together
  size_t values_bytes_ = 0, products_bytes_ = 0, scratch_bytes_ = 0;
  onednn::Engine on_;
  onednn::Call whole_, last_;  // products of a piece, and of the last one
};

// Transforms and reading the larger weights cost more than what few channels or results save.
bool is_profitable(const ConvCase& c) {
  constexpr int64_t kFewestChannels = 16, kFewestTiles = 12;
  const int64_t inputs = c.x[1], outputs = c.w[0], tiles = Tiles(c).count();
  return inputs * outputs >= kFewestChannels * (inputs + outputs) && tiles >= kFewestTiles &&
         2 * c.y.count(2) * c.y[0] >= kOutput * kOutput * tiles;
}

std::unique_ptr<LinearKernel> make_conv_winograd(Context&, const ConvCase& c, std::string& reason) {
  const std::vector<int64_t> ones(2, 1);
  if (!c.packs_weights || c.backward_data || c.backward_weights) {
    reason = "for plans without gradients only";
  } else if (c.dtype != DType::f32 || c.order != Order::channels_last || c.x_channels != 0) {
    reason = "for channels-last images in float32 only";
  } else if (c.x.axes() != 4 || c.w[2] != 3 || c.w[3] != 3 || c.stride != ones ||
             c.dilation != ones || c.groups != 1) {
    reason = "for dense windows of 3 x 3 only";
  } else if (!is_profitable(c)) {
    reason = "few channels or results";
  } else if (!may_generate_code() || !has_room_for_code(kCodeOfProducts)) {
    reason = "no code may be generated here";
  } else {
    auto conv = std::make_unique<WinogradConv>(c);
    if (conv->prepare(reason)) return conv;
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "winograd", RunsOn::cpu, 60, make_conv_winograd);

}  // namespace
}  // namespace crema
