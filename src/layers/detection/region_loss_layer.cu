// RegionLoss (forks): the loss of a YOLO version 2 detector.
//   loss = 1 / N * sum of d^2    over all values of x, d as below
// Each cell (i, j) of S x S has `num` boxes of 5 + C values: position in the cell and objectness
// through a sigmoid, logarithm of the size relative to the anchor's (biases, in cells), classes
// through a softmax. An object belongs to the cell of its centre and the box whose size overlaps
// most; of several objects the last one wins. With s the derivative of the sigmoid at a value:
//   objectness: d = noobject_scale * p * s
//     0 where the box overlaps an object by more than thresh
//     object_scale * (p - truth) * s where an object belongs; truth is the overlap, 1 without
//     rescore
//   where an object belongs:
//     position and size: d = coord_scale * (value - truth), without rescore times 2 - w * h;
//     for the position times s
//     classes: d = class_scale * (p - truth)
//   position and size of other boxes: for the first 12800 images
//     d = 0.01 * (value - that of the cell's centre and the anchor's size), for the position
//     times s; then 0
// Shapes: x (N, num * (5 + C), S, S), objects (N, ...) of rows (class, x, y, width, height)
// relative to the image, ended by the first x = 0; the loss is a scalar.
// Parameters: none.
// Gradient: not the derivative of the loss: dx = d / N, times the loss weight; none for the
// objects.
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/reduce.h"
#include "layers/detection/annealing.h"
#include "layers/detection/yolo_boxes.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

template <typename T>
struct RegionScales {
  T thresh, coord, object, noobject, classes;
  bool rescore;
};

template <typename T>
struct RegionBoxes {
  const T *x, *sizes;
  int64_t side, boxes, classes;
  CREMA_HD CellBox<T> box(int64_t image, int64_t position) const {
    const int64_t cells = side * side, box = position / cells, cell = position % cells;
    const T* at = x + (image * boxes + box) * (5 + classes) * cells + cell;
    return {(static_cast<T>(cell % side) + sigmoid_of(at[0])) / static_cast<T>(side),
            (static_cast<T>(cell / side) + sigmoid_of(at[cells])) / static_cast<T>(side),
            exp_of(at[2 * cells]) * sizes[2 * box], exp_of(at[3 * cells]) * sizes[2 * box + 1]};
  }
};

// d of one box of one cell.
template <typename T>
struct RegionDeltas {
  Objects<T> objects;
  const T *x, *sizes;
  const T *max_of_part, *last_of_part;  // outputs of Closest
  int64_t parts, all;                   // all: boxes of the batch
  int64_t side, boxes, classes;
  RegionScales<T> scales;
  PassNumber passes;
  double early;  // number of passes that still pull all boxes to their cells
  LabelNote note;
  T* d;
  CREMA_HD void operator()(int64_t index) const {
    const int64_t cells = side * side, position = index % (boxes * cells);
    const int64_t image = index / (boxes * cells), box = position / cells, cell = position % cells;
    const int64_t at = (image * boxes + box) * (5 + classes) * cells + cell;
    const T width = sizes[2 * box], height = sizes[2 * box + 1], s = static_cast<T>(side);
    const T column = static_cast<T>(cell % side), line = static_cast<T>(cell / side);
    const T px = sigmoid_of(x[at]), py = sigmoid_of(x[at + cells]);
    const ClosestObject<T> closest(max_of_part, last_of_part, index, all, parts);
    const T maximum = closest.maximum;
    const int64_t last = closest.last;
    const bool has = last >= 0;
    const T* truth = objects.row(image, has ? last : 0);
    const RegionBoxes<T> cell_boxes{x, sizes, side, boxes, classes};
    const T overlap_of_last = has ? cell_boxes.box(image, position).overlap_with(truth) : T(0);
    const T score = sigmoid_of(x[at + 4 * cells]), slope = score * (1 - score);
    const T wanted = scales.rescore ? overlap_of_last : T(1);
    const T absent = maximum > scales.thresh ? T(0) : scales.noobject * score * slope;
    d[at + 4 * cells] = has ? scales.object * (score - wanted) * slope : absent;

    const T size_weight = scales.rescore ? T(1) : 2 - truth[3] * truth[4];
    const T pull = passes.get() < early ? T(0.01) : T(0);
    const T scale = has ? scales.coord * size_weight : pull;
    const T tx = has ? truth[1] * s - column : T(0.5), ty = has ? truth[2] * s - line : T(0.5);
    const T tw = has ? log(truth[3] / width) : T(0), th = has ? log(truth[4] / height) : T(0);
    d[at] = scale * (px - tx) * px * (1 - px);
    d[at + cells] = scale * (py - ty) * py * (1 - py);
    d[at + 2 * cells] = scale * (x[at + 2 * cells] - tw);
    d[at + 3 * cells] = scale * (x[at + 3 * cells] - th);
    write_classes(at + 5 * cells, cells, has, truth[0], image * objects.each + last);
  }
  CREMA_HD void write_classes(int64_t at, int64_t cells, bool has, T label, int64_t object) const {
    const bool known = !has || is_class(label, classes);
    if (!known) note.write(object, label);
    T largest = x[at], sum = 0;
    for (int64_t c = 1; c < classes; ++c)
      largest = x[at + c * cells] > largest ? x[at + c * cells] : largest;
    for (int64_t c = 0; c < classes; ++c) sum += exp_of(x[at + c * cells] - largest);
    for (int64_t c = 0; c < classes; ++c) {
      const T p = exp_of(x[at + c * cells] - largest) / sum;
      const T truth = static_cast<int64_t>(label) == c ? T(1) : T(0);
      const T slope = has ? scales.classes * (p - truth) : T(0);
      d[at + c * cells] = known ? slope : T(NAN);
    }
  }
};

struct ShareOf {
  const void* weight;
  float share;
  template <typename T>
  CREMA_HD T operator()(T d) const {
    return d * share * *static_cast<const T*>(weight);
  }
};

class RegionLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  const RegionLossParameter& p() const { return params<RegionLossParameter>(); }
  int64_t boxes() const { return p().num(); }
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().biases_size() == 2 * int64_t{p().num()},
            "region_loss_param needs `biases`, width and height of each of num: ", p().num(),
            " boxes, but has ", p().biases_size(), " values");
    require(
        p().coords() == 4 && p().bias_match() && p().softmax() && p().softmax_tree().empty() &&
            p().class_map().empty(),
        "region_loss_param: only coords: 4, bias_match: 1 and softmax: 1 are supported, without "
        "softmax_tree and class_map");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t channels = boxes() * (5 + p().num_class());
    require(x.axes() == 4 && x[1] == channels && x[2] == x[3],
            "the first bottom must be square, with num * (5 + num_class) = ", channels,
            " channels, but is ", x.brief());
    check_object_rows(bottoms[1], x[0]);
    return {{Shape()}, {{x, {}}, {{LabelNote::kCount}, DType::i32, true}}};  // saved: d
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  struct State : LayerState {
    Tensor sizes;  // box sizes relative to the image, then box indices
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const auto side = static_cast<float>(preparation.bottoms[0][2]);
    std::vector<float> sizes;  // relative to the image, then the boxes' indices
    for (const float size : p().biases()) sizes.push_back(size / side);
    for (int64_t box = 0; box < boxes(); ++box) sizes.push_back(static_cast<float>(box));
    Prepared prepared;  // workspace: the objects' boxes, and the outputs of Closest
    Tensor& on_device = prepared.make_state<State>().sizes;
    on_device = Tensor(context, Shape{static_cast<int64_t>(sizes.size())}, preparation.dtype);
    from_floats(context, sizes.data(), on_device);
    const int64_t parts = closest_parts(context.device() == Device::gpu);
    const Shape& x = preparation.bottoms[0];
    prepared.workspace = static_cast<size_t>(preparation.bottoms[1].count() / 5 +
                                             2 * parts * x[0] * boxes() * x.count(2)) *
                         size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &d = pass.saved[0];
    const int64_t images = x.shape()[0], side = x.shape()[2], classes = p().num_class();
    on(x, [&]<typename T>() {
      const Objects<T> objects{pass.bottom[1].data<T>(), pass.bottom[1].count() / (5 * images)};
      if (x.device() == Device::cpu) check_objects(objects, images, classes);
      const T* sizes = state_of<State>(pass).sizes.data<T>();
      const LabelNote note{pass.saved[1].data<int32_t>(), classes, objects.each, pass.pass,
                           pass.live_pass};
      LabelNote of_box = note;
      of_box.classes = kOfCoordinate;
      T* belongs = pass.workspace.data<T>();
      parallel_for(
          context, images * objects.each,
          Assign<T>{objects, side, boxes(), sizes, sizes + 2 * boxes(), boxes(), of_box, belongs},
          64);
      const int64_t positions = boxes() * side * side, all = images * positions,
                    parts = closest_parts(context.device() == Device::gpu);
      T *maximum = belongs + images * objects.each, *last = maximum + parts * all;
      const RegionBoxes<T> cell_boxes{x.data<T>(), sizes, side, boxes(), classes};
      parallel_for(context, parts * all,
                   Closest<T, RegionBoxes<T>>{cell_boxes, objects, belongs, images, positions,
                                              parts, maximum, last},
                   64);
      const RegionScales<T> scales{
          static_cast<T>(p().thresh()),       static_cast<T>(p().coord_scale()),
          static_cast<T>(p().object_scale()), static_cast<T>(p().noobject_scale()),
          static_cast<T>(p().class_scale()),  p().rescore() != 0};
      // Images of all ranks.
      const int64_t seen = pass.share.all > 0 ? pass.share.all : images;
      const double early = static_cast<double>(12800 / seen);
      parallel_for(
          context, all,
          RegionDeltas<T>{objects, x.data<T>(), sizes, maximum, last, parts, all, side, boxes(),
                          classes, scales, PassNumber(pass), early, note, d.data<T>()},
          64);
      parallel_sum<T>(context, {1, 1, x.count()}, Squares<T>{d.data<T>()},
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(images)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dx = pass.bottom_diff[0];
    const float share = 1 / static_cast<float>(dx.shape()[0]);
    pointwise(context, ShareOf{pass.top_diff[0].raw(), share}, dx, pass.saved[0]);
  }

  void check(Context& context, const Forward& pass) const override {
    check_object_note(context, pass.saved[1]);
  }
};

}  // namespace
REGISTER_LAYER(RegionLoss, RegionLossLayer);
}  // namespace crema
