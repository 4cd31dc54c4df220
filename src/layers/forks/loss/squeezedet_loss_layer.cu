// SqueezeDetLoss (a fork): boxes shifted from anchors, with classes and a confidence for each.
//   The box of an anchor, clipped to the image: centre + (dx, dy) * size, size * exp(dw), exp(dh).
//   The anchor that overlaps an object most is the object's; u is that overlap. Of an image with
//   n objects and A anchors, summed over the objects:
//     lambda_conf / n * -log(p of its class + epsilon)
//     + pos_conf / n * (c - u)^2 + neg_conf / (A - n) * sum of c^2 over the other anchors
//     + lambda_bbox / n * sum of the squared differences of its anchor's shifts from the object's
//   The loss is the mean over the images; one without objects adds nothing.
// Shapes: p (N, A, classes), probabilities; c (N, H, W, anchors_per_grid); shifts dx, dy, dh, dw
// (N, H, W, 4 anchors_per_grid); labels (N, 5 M), rows of x1, y1, x2, y2, class, as many as there
// are before an x1 of -1. A = H W anchors_per_grid, in that order. The centres of the anchors
// divide the image, transform_param.crop_size wide and high or else 416, into W + 1 parts in x and
// H + 1 in y; position h W + w has the centre with index h W + w counted with y fastest, so where h
// is not w it is another position's centre, as in the fork.
// Parameters: none.
// Gradient: that of c and of the shifts with u constant; dp = -1 / (p + epsilon) of the class,
// without its factors, as in the fork. Over N, times the loss weight; none for labels.
#include <cmath>

#include "device/aligned.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr int64_t kRow = 5, kSlice = 64;  // values per object; anchors that one thread compares

// Anchors and images: constant during training. sizes: width and height of each anchor.
template <typename T>
struct AnchorGrid {
  int64_t height, width, each;  // each: anchors per position
  T image, epsilon;
  const T* sizes;
  CREMA_HD int64_t anchors() const { return height * width * each; }
  CREMA_HD T w(int64_t anchor) const { return sizes[anchor % each * 2]; }
  CREMA_HD T h(int64_t anchor) const { return sizes[anchor % each * 2 + 1]; }
  CREMA_HD T x(int64_t anchor) const {
    return T(anchor / each / height + 1) * image / T(width + 1);
  }
  CREMA_HD T y(int64_t anchor) const {
    return T(anchor / each % height + 1) * image / T(height + 1);
  }
  CREMA_HD T cut(T at) const { return at < 0 ? T(0) : at > image - 1 ? image - 1 : at; }
  // Overlap of an anchor's box with an object.
  CREMA_HD T overlap(int64_t anchor, const T* shift, const T* object) const {
    const T cx = x(anchor) + w(anchor) * shift[0], cy = y(anchor) + h(anchor) * shift[1];
    const T half_h = h(anchor) * exp_of(shift[2]) / 2, half_w = w(anchor) * exp_of(shift[3]) / 2;
    const T x1 = cut(cx - half_w), y1 = cut(cy - half_h), x2 = cut(cx + half_w),
            y2 = cut(cy + half_h);
    const T across = (x2 < object[2] ? x2 : object[2]) - (x1 > object[0] ? x1 : object[0]);
    const T down = (y2 < object[3] ? y2 : object[3]) - (y1 > object[1] ? y1 : object[1]);
    const T both = across > 0 && down > 0 ? across * down : T(0);
    const T all = (x2 - x1) * (y2 - y1) + (object[2] - object[0]) * (object[3] - object[1]) - both;
    return both / (all + epsilon);
  }
  // Shift number k that gives an object's box; its size counts whole pixels.
  CREMA_HD T shift_to(const T* object, int64_t anchor, int k) const {
    const T wide = object[2] - object[0] + 1, high = object[3] - object[1] + 1;
    return k == 0   ? (object[0] + wide / 2 - x(anchor)) / w(anchor)
           : k == 1 ? (object[1] + high / 2 - y(anchor)) / h(anchor)
           : k == 2 ? log(high / h(anchor) + epsilon)
                    : log(wide / w(anchor) + epsilon);
  }
};

template <typename T>
struct CountObjects {
  const T* labels;
  int64_t maximum;
  int32_t* counts;
  CREMA_HD void operator()(int64_t image) const {
    const T* rows = labels + image * maximum * kRow;
    int32_t count = 0;
    while (count < maximum && rows[count * kRow] != T(-1)) ++count;
    counts[image] = count;
  }
};

// The best anchor of a slice for an object: row = image * maximum + object.
template <typename T>
struct BestOfSlice {
  AnchorGrid<T> grid;
  const T *shifts, *labels;
  const int32_t* counts;
  int64_t maximum, slices;
  T* overlaps;
  int32_t* anchors;
  CREMA_HD void operator()(int64_t row, int64_t slice) const {
    const int64_t image = row / maximum, all = grid.anchors();
    if (row % maximum >= counts[image]) return;
    const int64_t end = (slice + 1) * kSlice < all ? (slice + 1) * kSlice : all;
    T best = -1;
    int64_t at = slice * kSlice;
    for (int64_t anchor = slice * kSlice; anchor < end; ++anchor) {
      const T overlap =
          grid.overlap(anchor, shifts + (image * all + anchor) * 4, labels + row * kRow);
      if (overlap > best) best = overlap, at = anchor;
    }
    overlaps[row * slices + slice] = best;
    anchors[row * slices + slice] = static_cast<int32_t>(at);
  }
};

template <typename T>
struct BestOfAll {
  const T* slice_overlaps;
  const int32_t *slice_anchors, *counts;
  int64_t maximum, slices;
  T* overlaps;
  int32_t* anchors;
  CREMA_HD void operator()(int64_t row) const {
    if (row % maximum >= counts[row / maximum]) return;
    int64_t best = row * slices;
    for (int64_t i = best + 1; i < (row + 1) * slices; ++i)
      if (slice_overlaps[i] > slice_overlaps[best]) best = i;
    overlaps[row] = slice_overlaps[best];
    anchors[row] = slice_anchors[best];
  }
};

// The loss terms of one anchor of an image.
template <typename T>
struct AnchorTerms {
  AnchorGrid<T> grid;
  const T *p, *c, *shifts, *labels, *overlaps;
  const int32_t *owners, *counts;  // owners: the anchor of each object
  int64_t maximum, classes;
  T lambda_conf, pos_conf, neg_conf, lambda_bbox;
  LabelNote note;

  // Index of an object's class in the anchor's probabilities; -1: out of range.
  CREMA_HD int64_t class_of(int64_t row) const {
    const T label = labels[row * kRow + 4];
    return is_class(label, classes) ? static_cast<int64_t>(label) : -1;
  }
  CREMA_HD T others(int64_t image) const {
    const int64_t rest = grid.anchors() - counts[image];
    return neg_conf / T(rest > 0 ? rest : 1);
  }

  template <typename>
  CREMA_HD T operator()(int64_t, int64_t image, int64_t anchor) const {
    const int64_t at = image * grid.anchors() + anchor;
    T of_objects = 0, count_of_others = 0;
    for (int64_t row = image * maximum; row < image * maximum + counts[image]; ++row) {
      if (owners[row] != anchor) {
        count_of_others += 1;
        continue;
      }
      const int64_t label = class_of(row);
      if (label < 0) note.write(row, labels[row * kRow + 4]);
      const T probability = label < 0 ? T(NAN) : p[at * classes + label];
      const T off = c[at] - overlaps[row];
      T box = 0;
      for (int k = 0; k < 4; ++k) {
        const T d = shifts[at * 4 + k] - grid.shift_to(labels + row * kRow, anchor, k);
        box += d * d;
      }
      of_objects += pos_conf * off * off + lambda_bbox * box -
                    lambda_conf * std::log(probability + grid.epsilon);
    }
    const T n = T(counts[image] > 0 ? counts[image] : 1);
    return of_objects / n + others(image) * count_of_others * c[at] * c[at];
  }
};

template <typename T>
struct AnchorGradient {
  AnchorTerms<T> terms;
  const T* weight;
  T share;
  T *dp, *dc, *dshifts;  // null: not needed
  CREMA_HD void operator()(int64_t image, int64_t anchor) const {
    const AnchorTerms<T>& t = terms;
    const int64_t at = image * t.grid.anchors() + anchor;
    const T scale = share * *weight, n = T(t.counts[image] > 0 ? t.counts[image] : 1);
    T of_c = 0, of_shifts[4] = {0, 0, 0, 0};
    for (int64_t k = 0; dp && k < t.classes; ++k) dp[at * t.classes + k] = 0;
    for (int64_t row = image * t.maximum; row < image * t.maximum + t.counts[image]; ++row) {
      if (t.owners[row] != anchor) {
        of_c += t.others(image) * t.c[at];
        continue;
      }
      of_c += t.pos_conf / n * (t.c[at] - t.overlaps[row]);
      for (int k = 0; k < 4; ++k)
        of_shifts[k] += t.lambda_bbox / n *
                        (t.shifts[at * 4 + k] - t.grid.shift_to(t.labels + row * kRow, anchor, k));
      const int64_t label = t.class_of(row);
      if (!dp || label < 0) continue;
      const int64_t i = at * t.classes + label;
      dp[i] -= scale / (t.p[i] + t.grid.epsilon);
    }
    if (dc) dc[at] = 2 * scale * of_c;
    for (int k = 0; dshifts && k < 4; ++k) dshifts[at * 4 + k] = 2 * scale * of_shifts[k];
  }
};

class SqueezeDetLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  const SqueezeDetLossParameter& p() const { return params<SqueezeDetLossParameter>(); }
  Arity bottoms() const override { return {4, 4}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int bottom) const override { return bottom < 3; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().classes() > 0 && p().anchors_per_grid() > 0,
            "squeezedet_param needs classes and "
            "anchors_per_grid, at least 1 each, but they are ",
            p().classes(), " and ", p().anchors_per_grid());
    require(p().anchor_shapes_size() == 2 * int64_t{p().anchors_per_grid()},
            "anchor_shapes is given ", p().anchor_shapes_size(), " times, but ",
            p().anchors_per_grid(), " anchors need ", 2 * int64_t{p().anchors_per_grid()},
            ": width and height of each");
    for (uint32_t side : p().anchor_shapes())
      require(side > 0, "an anchor has a side of 0 pixels: anchor_shapes are width and height");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &classes = bottoms[0], &c = bottoms[1], &shifts = bottoms[2], &labels = bottoms[3];
    const int64_t each = p().anchors_per_grid();
    require(c.axes() == 4 && c[3] == each, "the confidences must have shape (N, H, W, ", each,
            "), but the second bottom is ", c.brief());
    require(classes.count() == Shape{c.count(), p().classes()}.count(),
            "the first bottom must have ", p().classes(), " probabilities for each of ", c.count(),
            " anchors, but it is ", classes.brief());
    const Shape wanted = {c[0], c[1], c[2], 4 * each};
    require(shifts == wanted, "the shifts must have shape ", wanted.brief(),
            ", but the third bottom is ", shifts.brief());
    require(labels.axes() > 0 && labels[0] == c[0] && labels.count(1) % kRow == 0,
            "the fourth bottom must have rows of x1, y1, x2, y2 and class for each of ", c[0],
            " images, but it is ", labels.brief());
    const int64_t objects = labels.count() / kRow;
    return {{Shape()},
            {{{objects}, {}},
             {{objects}, DType::i32},
             {{c[0]}, DType::i32},
             {{LabelNote::kCount}, DType::i32, true}}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  // kOverlaps and kOwners: of each object with its anchor; kCounts: objects of each image.
  enum Saved { kOverlaps, kOwners, kCounts, kNote };

  struct State : LayerState {
    Tensor sizes;  // of the anchors
    int64_t anchors = 0, slices = 0, maximum = 0;
    size_t anchors_at = 0;  // offset in the workspace
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const std::vector<double> sizes(p().anchor_shapes().begin(), p().anchor_shapes().end());
    Prepared prepared;
    State& s = prepared.make_state<State>();
    s.sizes = Tensor(context, {p().anchor_shapes_size()}, preparation.dtype);
    from_doubles(context, sizes.data(), s.sizes);
    s.anchors = preparation.bottoms[1].count(1);
    s.slices = (s.anchors + kSlice - 1) / kSlice;
    s.maximum = preparation.bottoms[3].count(1) / kRow;
    const size_t slots = static_cast<size_t>(preparation.bottoms[1][0] * s.maximum * s.slices);
    s.anchors_at = aligned(slots * size_of(preparation.dtype));
    prepared.workspace = s.anchors_at + aligned(slots * sizeof(int32_t));
    return prepared;
  }

  template <typename T, typename Pass>
  AnchorTerms<T> terms(const Pass& pass) const {
    const State& s = state_of<State>(pass);
    const Shape& c = pass.bottom[1].shape();
    const auto& transform = message().transform_param();
    const AnchorGrid<T> grid{
        c[1],
        c[2],
        c[3],
        static_cast<T>(transform.crop_size() > 0 ? transform.crop_size() : 416),
        static_cast<T>(p().epsilon()),
        s.sizes.data<T>()};
    return {grid,
            pass.bottom[0].template data<T>(),
            pass.bottom[1].template data<T>(),
            pass.bottom[2].template data<T>(),
            pass.bottom[3].template data<T>(),
            pass.saved[kOverlaps].template data<T>(),
            pass.saved[kOwners].template data<int32_t>(),
            pass.saved[kCounts].template data<int32_t>(),
            s.maximum,
            p().classes(),
            static_cast<T>(p().lambda_conf()),
            static_cast<T>(p().pos_conf()),
            static_cast<T>(p().neg_conf()),
            static_cast<T>(p().lambda_bbox()),
            {pass.saved[kNote].template data<int32_t>(), p().classes(), s.maximum, pass.pass,
             pass.live_pass}};
  }

  // Called on the CPU, where kernels do not note errors.
  template <typename T>
  static void check_classes(const AnchorTerms<T>& t, int64_t images, int64_t maximum) {
    for (int64_t row = 0; row < images * maximum; ++row) {
      if (row % maximum < t.counts[row / maximum] && t.class_of(row) < 0)
        fail_for_label(row, static_cast<double>(t.labels[row * kRow + 4]), t.classes, maximum);
    }
  }

  void forward(Context& context, const Forward& pass) const override {
    const State& s = state_of<State>(pass);
    const int64_t images = pass.bottom[1].shape()[0];
    on(pass.bottom[0], [&]<typename T>() {
      const AnchorTerms<T> t = terms<T>(pass);
      parallel_for(context, images,
                   CountObjects<T>{t.labels, s.maximum, pass.saved[kCounts].data<int32_t>()});
      if (context.device() == Device::cpu) check_classes(t, images, s.maximum);
      T* overlaps = pass.workspace.data<T>();
      auto* anchors = reinterpret_cast<int32_t*>(pass.workspace.data<char>() + s.anchors_at);
      parallel_rows(context, images * s.maximum, s.slices,
                    BestOfSlice<T>{t.grid, t.shifts, t.labels, t.counts, s.maximum, s.slices,
                                   overlaps, anchors});
      parallel_for(
          context, images * s.maximum,
          BestOfAll<T>{overlaps, anchors, t.counts, s.maximum, s.slices,
                       pass.saved[kOverlaps].data<T>(), pass.saved[kOwners].data<int32_t>()});
      parallel_sum<T>(context, {1, images, s.anchors}, t,
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(images)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const int64_t images = pass.bottom[1].shape()[0];
    on(pass.bottom[0], [&]<typename T>() {
      parallel_rows(
          context, images, state_of<State>(pass).anchors,
          AnchorGradient<T>{terms<T>(pass), pass.top_diff[0].data<T>(),
                            T(1) / static_cast<T>(images), pass.bottom_diff[0].data<T>(),
                            pass.bottom_diff[1].data<T>(), pass.bottom_diff[2].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[kNote]);
  }
};

}  // namespace
REGISTER_LAYER(SqueezeDetLoss, SqueezeDetLossLayer);
}  // namespace crema
