// Poolings.
#include <algorithm>

#include "exchange/onnx/operators/windows.h"
#include "proto/params/pooling.pb.h"

namespace crema {
namespace {

struct PoolSettings {
  bool average = false;
  bool counts_padding = true;
  bool rounds_down = false;
  std::vector<int64_t> pad;
};

void fill_list(const std::vector<int64_t>& values, BlobShape* shape) {
  for (const int64_t value : values) shape->add_dim(value);
}

void fill_pooling(const OnnxWindows& w, const PoolSettings& settings, LayerParameter* layer) {
  PoolingParameter* const p = layer->mutable_pooling_param();
  p->set_pool(settings.average ? PoolingParameter::AVE : PoolingParameter::MAX);
  const auto alike = [](const std::vector<int64_t>& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](int64_t value) { return value == values[0]; });
  };
  const auto number = [](int64_t value) { return static_cast<uint32_t>(value); };
  const bool two = w.axes() == 2;
  if (alike(w.kernel)) {
    p->set_kernel_size(number(w.kernel[0]));
  } else if (two) {
    p->set_kernel_h(number(w.kernel[0]));
    p->set_kernel_w(number(w.kernel[1]));
  } else {
    fill_list(w.kernel, p->mutable_kernel_shape());
  }
  if (alike(w.stride)) {
    if (w.stride[0] != 1) p->set_stride(number(w.stride[0]));
  } else if (two) {
    p->set_stride_h(number(w.stride[0]));
    p->set_stride_w(number(w.stride[1]));
  } else {
    fill_list(w.stride, p->mutable_stride_shape());
  }
  if (alike(settings.pad)) {
    if (settings.pad[0] != 0) p->set_pad(number(settings.pad[0]));
  } else if (two) {
    p->set_pad_h(number(settings.pad[0]));
    p->set_pad_w(number(settings.pad[1]));
  } else {
    fill_list(settings.pad, p->mutable_pad_shape());
  }
  if (settings.rounds_down) p->set_round_mode(PoolingParameter::FLOOR);
  if (settings.average && !settings.counts_padding) p->set_avg_include_pad(false);
  set_extents(w.dilation, 1, p->mutable_dilation());
}

// How many windows a layer has along an axis (layers/vision/pooling_layer.cpp).
int64_t windows_of_layer(const OnnxWindows& w, size_t i, int64_t extent, int64_t pad, bool padded,
                         bool rounds_down) {
  const int64_t all = extent + 2 * pad, span = w.span(i), stride = w.stride[i];
  int64_t count;
  if (all >= span)
    count = (all - span + (rounds_down ? 0 : stride - 1)) / stride + 1;
  else
    count = rounds_down ? 0 : 1 - (span - all) / stride;
  if (padded && (count - 1) * stride >= extent + pad) --count;
  return count;
}

class PoolImport {
 public:
  PoolImport(OperatorImport& op, const OnnxWindows& windows, const Shape& image, bool average)
      : op_(op), w_(windows), image_(image) {
    settings_.average = average;
    settings_.counts_padding = op.int_of("count_include_pad", 0) != 0;
  }

  // Padding of the layer, and how it rounds, so that the windows of the model are those of the
  // layer. False: there is none.
  bool find() {
    settings_.pad = w_.before;
    for (size_t i = 0; i < w_.axes(); ++i)
      if (settings_.pad[i] >= w_.kernel[i]) return false;
    for (const bool down : {false, true}) {
      settings_.rounds_down = down;
      if (windows_agree() && divisors_agree()) return true;
    }
    return false;
  }

  // The same with more padding, whose windows are cut off. Not for means that count padding.
  bool find_wider() {
    if (settings_.average && settings_.counts_padding) return false;
    settings_.rounds_down = true;
    for (size_t i = 0; i < w_.axes(); ++i) {
      int64_t& pad = settings_.pad[i];
      while (outputs_with(i) - front(i) < w_.outputs[i] && pad < w_.kernel[i]) pad += w_.stride[i];
      if (pad >= w_.kernel[i]) return false;
    }
    return true;
  }

  void give(const std::string& x) {
    std::string y = op_.layer("Pooling", {x},
                              [&](LayerParameter* layer) { fill_pooling(w_, settings_, layer); });
    for (size_t i = 0; i < w_.axes(); ++i)
      y = op_.cut(y, static_cast<int>(i) + 2, front(i), front(i) + w_.outputs[i]);
    op_.give(y);
  }

 private:
  int64_t extent(size_t i) const { return image_[static_cast<int>(i) + 2]; }
  int64_t front(size_t i) const { return (settings_.pad[i] - w_.before[i]) / w_.stride[i]; }
  int64_t outputs_with(size_t i) const {
    const bool padded = std::any_of(settings_.pad.begin(), settings_.pad.end(),
                                    [](int64_t pad) { return pad > 0; });
    return windows_of_layer(w_, i, extent(i), settings_.pad[i], padded, settings_.rounds_down);
  }
  bool windows_agree() const {
    for (size_t i = 0; i < w_.axes(); ++i)
      if (outputs_with(i) != w_.outputs[i]) return false;
    return true;
  }
  // The layer divides by the part of the window within the image and a padding that is the same on
  // both sides.
  bool divisors_agree() const {
    if (!settings_.average || !settings_.counts_padding) return true;
    for (size_t i = 0; i < w_.axes(); ++i) {
      for (int64_t o = 0; o < w_.outputs[i]; ++o) {
        const int64_t end = o * w_.stride[i] - w_.before[i] + w_.span(i);
        if (std::min(end, extent(i) + w_.before[i]) != std::min(end, extent(i) + w_.behind[i]))
          return false;
      }
    }
    return true;
  }

  OperatorImport& op_;
  const OnnxWindows w_;
  const Shape image_;
  PoolSettings settings_;
};

// What padding a pooling can take over: of values that do not count.
const PendingPad* pooling_padding(const OperatorImport& op, bool average) {
  const ImportValue& value = op.value(0);
  if (!value.pad || average || value.pad->value > -1e30f) return nullptr;
  for (size_t axis = 0; axis < value.pad->before.size(); ++axis)
    if (value.pad->before[axis] < 0 || value.pad->behind[axis] < 0) return nullptr;
  return value.pad.get();
}

void read_pool(OperatorImport& op, bool average) {
  op.only_outputs(1);
  require(op.int_of("storage_order", 0) == 0, "storage_order 1 is for indices only");
  const PendingPad* const pending = pooling_padding(op, average);
  OnnxWindows w = read_onnx_windows(op, {}, pending);
  std::string x = pending ? op.unpadded(0) : op.blob(0);
  PoolImport pool(op, w, op.blob_shape(x), average);
  if (pool.find() || pool.find_wider()) return pool.give(x);
  require(average && op.int_of("count_include_pad", 0) != 0, "no pooling layer has the padding ",
          Shape(w.before).brief(), " in front and ", Shape(w.behind).brief(), " behind");
  PendingPad pad;
  pad.before = pad.behind = {0, 0};
  pad.before.insert(pad.before.end(), w.before.begin(), w.before.end());
  pad.behind.insert(pad.behind.end(), w.behind.begin(), w.behind.end());
  x = op.padded(x, pad);
  w.before.assign(w.axes(), 0);
  w.behind.assign(w.axes(), 0);
  PoolImport of_padded(op, w, op.blob_shape(x), average);
  require(of_padded.find(), "no pooling layer has these windows");
  of_padded.give(x);
}
void read_max_pool(OperatorImport& op) { read_pool(op, false); }
void read_average_pool(OperatorImport& op) { read_pool(op, true); }
IMPORT_OPERATOR(MaxPool, read_max_pool);
IMPORT_OPERATOR(AveragePool, read_average_pool);

void read_global_pool(OperatorImport& op, bool average) {
  op.give(op.layer("Pooling", {op.blob(0)}, [&](LayerParameter* layer) {
    PoolingParameter* const p = layer->mutable_pooling_param();
    p->set_pool(average ? PoolingParameter::AVE : PoolingParameter::MAX);
    p->set_global_pooling(true);
  }));
}
void read_global_max_pool(OperatorImport& op) { read_global_pool(op, false); }
void read_global_average_pool(OperatorImport& op) { read_global_pool(op, true); }
IMPORT_OPERATOR(GlobalMaxPool, read_global_max_pool);
IMPORT_OPERATOR(GlobalAveragePool, read_global_average_pool);

}  // namespace
}  // namespace crema
