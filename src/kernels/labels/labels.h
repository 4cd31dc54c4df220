// Labels that must be classes, in losses and Accuracy. A label that is not a class is an Error on
// the CPU; a GPU does not stop, but returns NaN and notes the label until the host reads the
// result.
#pragma once

#include <optional>

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace crema {

// Whether a label is an integer from 0 to classes - 1. NaN is not.
template <typename T>
CREMA_HD bool is_class(T label, int64_t classes) {
  return label >= 0 && label < static_cast<T>(classes) &&
         label == static_cast<T>(static_cast<int>(label));
}

// The note in which kernels record the first bad label.
struct LabelNote {
  // int32: position + 1 of the label, the bits of the label as a float, the number of classes, the
  // number of positions per image, the pass. Initially zero; a note stays until check_label_note()
  // resets it.
  static constexpr int64_t kCount = 5;
  int32_t* numbers = nullptr;
  int64_t classes = 0, each = 1;  // each: positions per image
  uint64_t pass = 0;              // of the forward pass; *live_pass is used instead unless null
  const uint64_t* live_pass = nullptr;

  // A no-op on the CPU.
  template <typename T>
  CREMA_HD void write([[maybe_unused]] int64_t position, [[maybe_unused]] T label) const {
#ifdef __CUDA_ARCH__
    if (atomicCAS(numbers, 0, static_cast<int>(position) + 1) != 0) return;
    numbers[1] = __float_as_int(static_cast<float>(label));
    numbers[2] = static_cast<int>(classes);
    numbers[3] = static_cast<int>(each);
    numbers[4] = static_cast<int>(live_pass ? *live_pass : pass);
#endif
  }
};

// Reads labels as classes.
template <typename T>
struct ClassLabels {
  static constexpr int kIgnored = -1, kBad = -2;

  const T* labels;
  int64_t classes;
  bool ignoring = false;
  int ignored = 0;

  // The class at a position, or one of the constants above.
  CREMA_HD int at(int64_t position) const {
    const T label = labels[position];
    if (ignoring && label == static_cast<T>(ignored)) return kIgnored;
    return is_class(label, classes) ? static_cast<int>(label) : kBad;
  }
};

// CPU: Error for the first label that is neither an integer from 0 to classes - 1 nor the ignored
// one. labels: float or double; each: positions per image.
void check_labels(const Tensor& labels, int64_t classes, int64_t each, std::optional<int> ignored);

// The contents of a note.
struct NotedLabel {
  int64_t position;
  double label;
  int64_t classes, each, pass;
};
// Nothing when the note is empty; resets it to zero. Waits for the GPU: call it where the host
// reads the result anyway.
std::optional<NotedLabel> take_label_note(Context& context, const Tensor& note);
// " of forward pass 7 (counted from 0)".
std::string when_noted(const NotedLabel& noted);
// Error when the note holds a label.
void check_label_note(Context& context, const Tensor& note);

// What to add to the message of a layer that reads one class for each of `rows`: nothing, unless the
// labels look like shares of the classes.
std::string hint_about_shares(const Shape& labels, int64_t rows);

// All digits of a label or target, which usually was a float: 1.5, 16777216.
std::string digits_of(double label);

// each: positions per image. when: "" or " of forward pass 7".
[[noreturn]] void fail_for_label(int64_t position, double label, int64_t classes, int64_t each,
                                 const std::string& when = "");

}  // namespace crema
