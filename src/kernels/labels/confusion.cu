#include "kernels/labels/confusion.h"

#include "kernels/labels/counts.h"
#include "kernels/labels/labels.h"
#include "kernels/reduce/largest_of_lines.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Score k of list i of image n is scores[n * of_image + k * of_class + i * of_list].
struct ScoreSteps {
  int64_t of_image, of_class, of_list;
};

std::optional<ScoreSteps> steps_of(const Tensor& scores, int axis) {
  const Shape& shape = scores.shape();
  const int64_t classes = shape[axis], lists = shape.count(axis + 1);
  const Format& format = scores.format();
  if (same_layout(format, Format::row_major(), shape)) return ScoreSteps{classes * lists, lists, 1};
  if (format.order != Order::channels_last || axis != 1 || format.points != 0) return {};
  const int64_t padded = format.channels > 0 ? format.channels : classes;
  return ScoreSteps{padded * lists, 1, padded};
}

template <typename S, typename L>
struct Answers {
  const S* scores;
  ScoreSteps steps;
  ClassLabels<L> labels;
  int64_t classes, lists;
  CREMA_HD void operator()(int64_t i, const Counter& counter) const {
    const S* score = scores + i / lists * steps.of_image + i % lists * steps.of_list;
    auto maximum = static_cast<Compute<S>>(*score);
    int64_t best = 0;
    for (int64_t k = 1; k < classes; ++k) {
      const auto value = static_cast<Compute<S>>(score[k * steps.of_class]);
      best = value > maximum ? k : best;
      maximum = value > maximum ? value : maximum;
    }
    count(i, best, counter);
  }
  CREMA_HD void count(int64_t i, int64_t best, const Counter& counter) const {
    const int label = labels.at(i);
    if (label >= 0) counter.add(label * classes + best);
    if (label == ClassLabels<L>::kBad) counter.add(classes * classes);
  }
};

// The counts on a CPU, whose threads would first have to clear and then add up counts of their own.
template <typename T>
void count_on_cpu(const Answers<T, T>& of, int64_t images, const Counter& counter) {
  if (of.lists == 1) {
    for (int64_t i = 0; i < images; ++i) of(i, counter);
    return;
  }
  T maximum[kListsTogether];
  int32_t best[kListsTogether];
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t first = 0; first < of.lists; first += kListsTogether) {
      const int64_t together = std::min(kListsTogether, of.lists - first);
      largest_of_lines<false>(of.scores + image * of.steps.of_image + first, of.classes, of.lists,
                              together, maximum, best);
      for (int64_t i = 0; i < together; ++i)
        of.count(image * of.lists + first + i, best[i], counter);
    }
  }
}

}  // namespace

bool counts_confusion(const Tensor& scores, int axis, const Tensor& labels) {
  const auto is_float = [](DType dtype) { return dtype == DType::f32 || dtype == DType::f64; };
  const std::optional<ScoreSteps> steps = steps_of(scores, axis);
  if (!steps || !is_float(labels.dtype()) ||
      !same_layout(labels.format(), Format::row_major(), labels.shape()))
    return false;
  if (scores.device() == Device::cpu)
    return scores.dtype() == labels.dtype() && steps->of_list == 1;
  return is_float(scores.dtype()) || scores.dtype() == DType::f16 || scores.dtype() == DType::bf16;
}

void add_confusion(Context& context, const Tensor& scores, int axis, const Tensor& labels,
                   std::optional<int> ignored, const Tensor& counts) {
  const ScoreSteps steps = *steps_of(scores, axis);
  const int64_t classes = scores.shape()[axis], lists = scores.shape().count(axis + 1);
  const auto answers = [&]<typename S, typename L>(const S* from, const L* labels_from) {
    const ClassLabels<L> read{labels_from, classes, ignored.has_value(), ignored.value_or(0)};
    return Answers<S, L>{from, steps, read, classes, lists};
  };
  auto* const into = counts.data<int32_t>();
  if (context.device() == Device::cpu) {
    on(scores, [&]<typename T>() {
      count_on_cpu(answers(scores.data<T>(), labels.data<T>()), scores.shape().count(0, axis),
                   Counter{into});
    });
    return;
  }
  on_real(scores, [&]<typename S>() {
    on(labels, [&]<typename L>() {
      add_counts(context, labels.count(), classes * classes + 1,
                 answers(scores.data<S>(), labels.data<L>()), into);
    });
  });
}

}  // namespace crema
