#include "kernels/labels/labels.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "tensor/on.h"

namespace crema {

std::string digits_of(double label) {
  if (std::isnan(label)) return cat(label);
  char text[32];
  const auto narrow = static_cast<float>(label);
  const auto [end, problem] = static_cast<double>(narrow) == label
                                  ? std::to_chars(text, text + sizeof(text), narrow)
                                  : std::to_chars(text, text + sizeof(text), label);
  return problem == std::errc() ? std::string(text, end) : cat(label);
}

void fail_for_label(int64_t position, double label, int64_t classes, int64_t each,
                    const std::string& when) {
  const bool integer = std::abs(label) < 1e9 && label == std::trunc(label);
  fail("label ", digits_of(label), " of image ", position / each, " of the batch", when,
       each > 1 ? cat(", position ", position % each, ",") : "", " is not a class: there are ",
       classes, " scores for each label, so labels are the integers from 0 to ", classes - 1,
       ". Correct the data, or num_output of the layer that gives the scores",
       integer    ? cat("; ignore_label: ", digits_of(label),
                        " (in loss_param or accuracy_param) leaves such labels out")
       : each > 1 ? "; images of labels are resized by the nearest pixel, not by a mean of several"
                  : "");
}

std::string hint_about_shares(const Shape& labels, int64_t rows) {
  if (labels.axes() != 2 || labels[0] != rows || labels[1] < 2) return "";
  return cat("; there are ", labels[1],
             " labels for each: a layer of type Slice makes a blob of each; "
             "soft labels, which mixup and cutmix make, are for SoftmaxWithLoss and Accuracy");
}

void check_labels(const Tensor& labels, int64_t classes, int64_t each, std::optional<int> ignored) {
  if (labels.device() != Device::cpu) return;
  on(labels, [&]<typename T>() {
    const T* label = labels.data<T>();
    for (int64_t i = 0; i < labels.count(); ++i) {
      if (is_class(label[i], classes) || (ignored && label[i] == static_cast<T>(*ignored)))
        continue;
      fail_for_label(i, label[i], classes, each);
    }
  });
}

std::optional<NotedLabel> take_label_note(Context& context, const Tensor& note) {
  if (note.device() != Device::gpu) return std::nullopt;
  int32_t found[LabelNote::kCount];
  copy_bytes(context, found, Device::cpu, note.raw(), note.device(), sizeof(found));
  if (found[0] == 0) return std::nullopt;
  zero(context, note);
  return NotedLabel{found[0] - 1, std::bit_cast<float>(found[1]), found[2], found[3], found[4]};
}

std::string when_noted(const NotedLabel& noted) {
  return cat(" of forward pass ", noted.pass, " (counted from 0)");
}

void check_label_note(Context& context, const Tensor& note) {
  if (const std::optional<NotedLabel> bad = take_label_note(context, note))
    fail_for_label(bad->position, bad->label, bad->classes, bad->each, when_noted(*bad));
}

}  // namespace crema
