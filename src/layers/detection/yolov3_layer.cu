// Yolov3 (forks): the loss of one scale of a YOLO version 3 detector, as in MobileNet-YOLO.
//   loss = 1 / N * sum of d^2    over all values of x, d as below
// Each cell (i, j) of S x S has `num` boxes of 5 + C values: position in the cell and objectness
// through a sigmoid, logarithm of the size relative to the anchor's (biases, in pixels of the S *
// anchors_scale wide image), classes through a sigmoid. An object belongs to the cell of its centre
// and to the box, of all biases, whose size overlaps most; that box may not be in this scale's
// mask.
//   objectness: d = p; 0 where the box overlaps an object by more than thresh; p - 1 (times
//     object_scale with use_logic_gradient) where one belongs
//   where an object belongs:
//     position and size: d = coord_scale * (2 - w * h) * (value - truth)
//     classes: d = class_scale * (p - truth)
// Shapes: x (N, num * (5 + C), S, S), objects (N, ...) of rows (class, x, y, width, height)
// relative to the image, ended by the first x = 0; the loss is a scalar.
// Parameters: none.
// Gradient: not the derivative of the loss: dx = d / N, with use_logic_gradient times the
// derivative of the sigmoid, times the loss weight; none for the objects.
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/reduce.h"
#include "layers/detection/yolo_boxes.h"
#include "layers/layer.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

template <typename T>
struct Yolov3Boxes {
  const T *x, *sizes, *mask;
  int64_t side, boxes, classes;
  CREMA_HD CellBox<T> box(int64_t image, int64_t position) const {
    const int64_t cells = side * side, box = position / cells, cell = position % cells;
    const T* at = x + (image * boxes + box) * (5 + classes) * cells + cell;
    const T* own = sizes + 2 * static_cast<int64_t>(mask[box]);
    return {(static_cast<T>(cell % side) + sigmoid_of(at[0])) / static_cast<T>(side),
            (static_cast<T>(cell / side) + sigmoid_of(at[cells])) / static_cast<T>(side),
            exp_of(at[2 * cells]) * own[0], exp_of(at[3 * cells]) * own[1]};
  }
};

// d of one box of one cell.
template <typename T>
struct Deltas {
  Objects<T> objects;
  const T *x, *belongs, *sizes, *mask;
  const T *max_of_part, *last_of_part;  // outputs of Closest
  int64_t parts, all;                   // all: boxes of the batch
  int64_t side, boxes, classes;
  T thresh, coord_scale, object_scale, class_scale;
  LabelNote note;
  T* d;
  CREMA_HD void operator()(int64_t index) const {
    const int64_t cells = side * side, position = index % (boxes * cells);
    const int64_t image = index / (boxes * cells), box = position / cells, cell = position % cells;
    const int64_t at = (image * boxes + box) * (5 + classes) * cells + cell;
    const T* own = sizes + 2 * static_cast<int64_t>(mask[box]);
    const T px = sigmoid_of(x[at]), py = sigmoid_of(x[at + cells]);
    const ClosestObject<T> closest(max_of_part, last_of_part, index, all, parts);
    const T maximum = closest.maximum;
    const int64_t last = closest.last;
    const T score = sigmoid_of(x[at + 4 * cells]);
    d[at + 4 * cells] = last >= 0 ? object_scale * (score - 1) : maximum > thresh ? T(0) : score;
    const T* truth = objects.row(image, last < 0 ? 0 : last);
    const T scale = last < 0 ? T(0) : coord_scale * (2 - truth[3] * truth[4]);
    const T tx = truth[1] * static_cast<T>(side) - static_cast<T>(cell % side);
    const T ty = truth[2] * static_cast<T>(side) - static_cast<T>(cell / side);
    d[at] = last < 0 ? T(0) : scale * (px - tx);
    d[at + cells] = last < 0 ? T(0) : scale * (py - ty);
    d[at + 2 * cells] = last < 0 ? T(0) : scale * (x[at + 2 * cells] - log(truth[3] / own[0]));
    d[at + 3 * cells] = last < 0 ? T(0) : scale * (x[at + 3 * cells] - log(truth[4] / own[1]));
    for (int64_t c = 0; c < classes; ++c) {
      const T p = sigmoid_of(x[at + (5 + c) * cells]);
      d[at + (5 + c) * cells] = last < 0 ? T(0) : class_scale * p;
    }
    // All objects of the box contribute to its classes.
    for (int64_t t = 0; t <= last; ++t) {
      if (belongs[image * objects.each + t] != static_cast<T>(position)) continue;
      const T label = objects.row(image, t)[0];
      const bool known = is_class(label, classes);
      if (!known) note.write(image * objects.each + t, label);
      const int64_t i = at + (5 + (known ? static_cast<int64_t>(label) : 0)) * cells;
      d[i] = known ? class_scale * (sigmoid_of(x[i]) - 1) : T(NAN);
    }
  }
};

template <typename T>
struct DeltaGradient {
  const T *x, *d, *weight;
  int64_t cells, values;  // values: per box
  bool logistic;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t value = i / cells % values;
    const T p = sigmoid_of(x[i]);
    const T slope = logistic && value != 2 && value != 3 ? p * (1 - p) : T(1);
    dx[i] = d[i] * slope * share * *weight;
  }
};

class Yolov3Layer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  const Yolov3Parameter& p() const { return params<Yolov3Parameter>(); }
  int64_t boxes() const { return p().num(); }
  int64_t values() const { return 5 + p().num_class(); }
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false, true}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().biases_size() > 0 && p().biases_size() % 2 == 0,
            "yolov3_param needs `biases`, width and height of each box, but has ",
            p().biases_size(), " values");
    require(p().mask_size() == int64_t{p().num()}, "yolov3_param has num: ", p().num(),
            " boxes a cell, but `mask` names ", p().mask_size());
    for (const uint32_t box : p().mask()) {
      require(int64_t{box} < p().biases_size() / 2, "mask names box ", box, ", but `biases` has ",
              p().biases_size() / 2, " boxes, counted from 0");
    }
    require(p().iou_thresh() >= 1, "iou_thresh is ", p().iou_thresh(),
            ", but several boxes for an object are not supported");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &objects = bottoms[1];
    require(x.axes() == 4 && x[1] == boxes() * values() && x[2] == x[3],
            "the first bottom must be square, with num * (5 + num_class) = ", boxes() * values(),
            " channels, but is ", x.brief());
    require(
        objects.axes() > 0 && objects[0] == x[0] && objects.count() % (5 * x[0]) == 0,
        "the second bottom must have rows of 5 values (class, x, y, width, height) for each of ",
        x[0], " images, but is ", objects.brief());
    return {{Shape()}, {{x, {}}, {{LabelNote::kCount}, DType::i32, true}}};  // saved: d
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  struct State : LayerState {
    Tensor sizes;  // box sizes relative to the image, then the mask
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    const float width = static_cast<float>(x[2] * p().anchors_scale());
    std::vector<float> sizes;
    for (const float size : p().biases()) sizes.push_back(size / width);
    sizes.insert(sizes.end(), p().mask().begin(), p().mask().end());
    Prepared prepared;  // workspace: the objects' boxes, and the outputs of Closest
    Tensor& on_device = prepared.make_state<State>().sizes;
    on_device = Tensor(context, Shape{static_cast<int64_t>(sizes.size())}, preparation.dtype);
    from_floats(context, sizes.data(), on_device);
    const int64_t parts = closest_parts(context.device() == Device::gpu);
    prepared.workspace = static_cast<size_t>(preparation.bottoms[1].count() / 5 +
                                             2 * parts * x[0] * boxes() * x.count(2)) *
                         size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &d = pass.saved[0];
    const int64_t images = x.shape()[0], side = x.shape()[2];
    on(x, [&]<typename T>() {
      const Objects<T> objects{pass.bottom[1].data<T>(), pass.bottom[1].count() / (5 * images)};
      if (x.device() == Device::cpu) check_objects(objects, images, p().num_class());
      const T *sizes = state_of<State>(pass).sizes.data<T>(), *mask = sizes + p().biases_size();
      const LabelNote note{pass.saved[1].data<int32_t>(), p().num_class(), objects.each, pass.pass,
                           pass.live_pass};
      LabelNote of_box = note;
      of_box.classes = kOfCoordinate;
      T* belongs = pass.workspace.data<T>();
      parallel_for(
          context, images * objects.each,
          Assign<T>{objects, side, boxes(), sizes, mask, p().biases_size() / 2, of_box, belongs},
          64);
      const int64_t positions = boxes() * side * side, all = images * positions,
                    parts = closest_parts(context.device() == Device::gpu);
      T *maximum = belongs + images * objects.each, *last = maximum + parts * all;
      const Yolov3Boxes<T> cell_boxes{x.data<T>(), sizes, mask, side, boxes(), p().num_class()};
      parallel_for(context, parts * all,
                   Closest<T, Yolov3Boxes<T>>{cell_boxes, objects, belongs, images, positions,
                                              parts, maximum, last},
                   64);
      const T object_scale = p().use_logic_gradient() ? static_cast<T>(p().object_scale()) : T(1);
      parallel_for(context, all,
                   Deltas<T>{objects, x.data<T>(), belongs, sizes, mask, maximum, last, parts, all,
                             side, boxes(), p().num_class(), static_cast<T>(p().thresh()),
                             static_cast<T>(p().coord_scale()), object_scale,
                             static_cast<T>(p().class_scale()), note, d.data<T>()},
                   64);
      parallel_sum<T>(context, {1, 1, x.count()}, Squares<T>{d.data<T>()},
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(images)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dx = pass.bottom_diff[0];
    on(x, [&]<typename T>() {
      parallel_for(
          context, x.count(),
          DeltaGradient<T>{x.data<T>(), pass.saved[0].data<T>(), pass.top_diff[0].data<T>(),
                           x.shape().count(2), values(), p().use_logic_gradient(),
                           T(1) / static_cast<T>(x.shape()[0]), dx.data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_object_note(context, pass.saved[1]);
  }
};

}  // namespace
REGISTER_LAYER(Yolov3, Yolov3Layer);
}  // namespace crema
