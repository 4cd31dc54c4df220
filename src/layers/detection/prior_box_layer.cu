// PriorBox: SSD's default boxes: several per position of a feature map, relative to the image.
// PriorBoxClustered: the same with a width and height given for each box.
//   centre = (w + offset) * step_w, (h + offset) * step_h in pixels; step is the image's size over
//   the map's unless given
//   boxes of PriorBox, for each min_size: a square of it, one of sqrt(min_size * max_size) if there
//   is a max_size, then for each aspect_ratio r (and 1 / r with flip) one min_size * sqrt(r) wide
//   and min_size / sqrt(r) high. As in SSD, sizes are truncated to integers.
//   with several offset_h and offset_w (OpenCV), each box is at each of them in turn
//   before these, with fixed_size and density (OpenVINO, for FaceBoxes): density x density squares of
//   each fixed_size around the centre, fixed_size / density apart, both truncated to integers; with
//   fixed_ratio that many boxes for each ratio in their place, else the aspect ratios follow. These
//   are always clipped.
// Shapes: a feature map (N, C, H, W) and the image (N, C', H', W'), which gives the image size
// unless img_size or img_h and img_w do; the top is (1, 2, H * W * boxes * 4): x1, y1, x2, y2 of
// each box, with clip: true clipped to the image; then the variances that predictions are divided
// by, 0.1 unless given.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <cmath>

#include "device/parallel.h"
#include "layers/layer.h"
#include "proto/params/forks_detection.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

struct Grid {
  int64_t height, width;  // of the map
  double image_height, image_width, step_h, step_w;
};

template <typename T>
struct PriorBody {
  Grid grid;
  int64_t boxes;
  // Sizes of each box; its centre: offsets in cells and shifts in pixels; clipped: whether it is always clipped.
  // variances: 4.
  const float *widths, *heights, *offsets_x, *offsets_y, *shifts_x, *shifts_y, *clipped, *variances;
  bool clip;
  T* y;
  // i runs over the corners' coordinates.
  CREMA_HD void operator()(int64_t i) const {
    const int64_t box = i / 4 % boxes, position = i / 4 / boxes;
    const bool across = i % 2 == 0, second = i % 4 >= 2;
    const double centre =
        across ? (static_cast<double>(position % grid.width) + offsets_x[box]) * grid.step_w +
                     static_cast<double>(shifts_x[box])
               : (static_cast<double>(position / grid.width) + offsets_y[box]) * grid.step_h +
                     static_cast<double>(shifts_y[box]);
    const double half = static_cast<double>(across ? widths[box] : heights[box]) / 2;
    double at =
        (centre + (second ? half : -half)) / (across ? grid.image_width : grid.image_height);
    if (clip || clipped[box] > 0) at = at < 0 ? 0 : at > 1 ? 1 : at;
    y[i] = static_cast<T>(at);
    y[grid.height * grid.width * boxes * 4 + i] = static_cast<T>(variances[i % 4]);
  }
};

class PriorBoxLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection};

  explicit PriorBoxLayer(bool clustered = false) : clustered_(clustered) {}

 private:
  const PriorBoxParameter& p() const { return params<PriorBoxParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.keeps_tops = true, .reads = {false, false}}; }
  bool reads_values(int) const override { return false; }

  void setup(Context&, const std::vector<Shape>&) override {
    if (clustered_) {
      read_clustered();
    } else {
      read_sizes();
    }
    repeat_at_offsets();
    const int variances = p().variance_size();
    require(variances == 0 || variances == 1 || variances == 4,
            "variance must be given once or 4 times, but is given ", variances, " times");
    for (int i = 0; i < 4; ++i) {
      variances_.push_back(variances == 0 ? 0.1f : p().variance(variances == 1 ? 0 : i));
      require(variances_.back() > 0, "variance must be positive, but is ", variances_.back());
    }
    require(!p().has_img_size() || !(p().has_img_h() || p().has_img_w()),
            "give img_size, or img_h and img_w, not both");
    require(!p().has_step() || !(p().has_step_h() || p().has_step_w()),
            "give step, or step_h and step_w, not both");
    const auto both = [](bool h, bool w, double minimum, const char* name) {
      require(h == w, name, "_h and ", name, "_w must be given together");
      require(!h || minimum > 0, name, "_h and ", name, "_w must be positive");
    };
    both(p().has_img_h(), p().has_img_w(), std::min(p().img_h(), p().img_w()), "img");
    both(p().has_step_h(), p().has_step_w(), std::min(p().step_h(), p().step_w()), "step");
    require(!p().has_step() || p().step() > 0, "step must be positive, but is ", p().step());
    require(!p().has_img_size() || p().img_size() > 0, "img_size must be positive");
  }

  void add(float width, float height, float shift_x = 0, float shift_y = 0, bool clipped = false) {
    widths_.push_back(width);
    heights_.push_back(height);
    shifts_x_.push_back(shift_x);
    shifts_y_.push_back(shift_y);
    clipped_.push_back(clipped ? 1.f : 0.f);
  }

  // The grids of boxes of fixed_size.
  void read_fixed(const std::vector<float>& ratios) {
    require(p().density_size() == p().fixed_size_size(),
            "there must be one density for each fixed_size, but there are ", p().density_size(),
            " and ", p().fixed_size_size());
    for (int i = 0; i < p().fixed_size_size(); ++i) {
      const float size = p().fixed_size(i), whole = std::floor(size);
      const auto side = static_cast<int>(p().density(i));
      require(size > 0 && side > 0, "fixed_size and density must be positive, but are ", size,
              " and ", p().density(i));
      const float apart = std::floor(size / static_cast<float>(side));
      const auto grid = [&](float width, float height) {
        for (int row = 0; row < side; ++row) {
          for (int column = 0; column < side; ++column) {
            add(width, height, (static_cast<float>(column) + 0.5f) * apart - whole / 2,
                (static_cast<float>(row) + 0.5f) * apart - whole / 2, true);
          }
        }
      };
      const auto box = [&](float ratio) {
        require(ratio > 0, "fixed_ratio must be positive, but is ", ratio);
        grid(size * std::sqrt(ratio), size / std::sqrt(ratio));
      };
      for (const float ratio : p().fixed_ratio()) box(ratio);
      if (p().fixed_ratio_size() > 0) continue;
      grid(whole, whole);
      for (const float ratio : ratios) {
        if (std::abs(ratio - 1) >= 1e-6f) box(ratio);
      }
    }
  }

  void read_sizes() {
    const int sizes = p().min_size_size();
    require(sizes > 0 || p().fixed_size_size() > 0,
            "prior_box_param needs min_size, the side of a box in pixels");
    require(p().max_size_size() == 0 || p().max_size_size() == sizes,
            "there must be one max_size for each min_size, or none, but there are ",
            p().max_size_size(), " and ", sizes);
    std::vector<float> ratios = {1};
    for (float ratio : p().aspect_ratio()) {
      require(ratio > 0, "aspect_ratio must be positive, but is ", ratio);
      const auto same = [&](float other) { return std::abs(ratio - other) < 1e-6f; };
      if (std::any_of(ratios.begin(), ratios.end(), same)) continue;
      ratios.push_back(ratio);
      if (p().flip()) ratios.push_back(1 / ratio);
    }
    read_fixed(ratios);
    for (int i = 0; i < sizes; ++i) {
      const float minimum = std::floor(p().min_size(i));
      require(p().min_size(i) > 0, "min_size must be positive, but is ", p().min_size(i));
      add(minimum, minimum);
      if (p().max_size_size() > 0) {
        require(p().max_size(i) > p().min_size(i), "max_size ", p().max_size(i),
                " must be greater than its min_size, ", p().min_size(i));
        const float middle = std::sqrt(minimum * std::floor(p().max_size(i)));
        add(middle, middle);
      }
      for (float ratio : ratios) {
        if (std::abs(ratio - 1) < 1e-6f) continue;
        add(minimum * std::sqrt(ratio), minimum / std::sqrt(ratio));
      }
    }
  }

  void read_clustered() {
    require(p().width_size() > 0 && p().width_size() == p().height_size(),
            "prior_box_param needs width and height of each box, but there are ", p().width_size(),
            " width and ", p().height_size(), " height");
    for (int i = 0; i < p().width_size(); ++i) {
      require(p().width(i) > 0 && p().height(i) > 0, "width and height must be positive, but are ",
              p().width(i), " and ", p().height(i));
      add(p().width(i), p().height(i));
    }
  }

  // Each box at each position within the cell.
  void repeat_at_offsets() {
    std::vector<float> x(p().offset_w().begin(), p().offset_w().end());
    std::vector<float> y(p().offset_h().begin(), p().offset_h().end());
    if (x.empty()) x = {p().offset()};
    if (y.empty()) y = {p().offset()};
    require(x.size() == y.size(), "there must be as many offset_h as offset_w, but there are ",
            y.size(), " and ", x.size());
    const size_t boxes = widths_.size();
    for (std::vector<float>* list : {&widths_, &heights_, &shifts_x_, &shifts_y_, &clipped_}) {
      std::vector<float> repeated;
      for (const float value : *list) repeated.insert(repeated.end(), x.size(), value);
      list->swap(repeated);
    }
    for (size_t i = 0; i < boxes; ++i) {
      offsets_x_.insert(offsets_x_.end(), x.begin(), x.end());
      offsets_y_.insert(offsets_y_.end(), y.begin(), y.end());
    }
  }

  int64_t boxes() const { return static_cast<int64_t>(widths_.size()); }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() == 4 && bottoms[1].axes() == 4, type(),
            " needs a feature map and the image, of 4 axes both, but they are ", bottoms[0].brief(),
            " and ", bottoms[1].brief());
    return {{{1, 2, bottoms[0][2] * bottoms[0][3] * boxes() * 4}}, {}};
  }

  struct State : LayerState {
    Grid grid;
    Tensor numbers;                // all lists of numbers, one after the other
    const void* filled = nullptr;  // memory that already holds the boxes
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    std::vector<float> numbers = widths_;
    for (const auto* more :
         {&heights_, &offsets_x_, &offsets_y_, &shifts_x_, &shifts_y_, &clipped_, &variances_})
      numbers.insert(numbers.end(), more->begin(), more->end());
    Prepared prepared;
    State& state = prepared.make_state<State>();
    Grid& grid = state.grid;
    state.numbers = Tensor(context, Shape{static_cast<int64_t>(numbers.size())});
    from_floats(context, numbers.data(), state.numbers);
    const Shape &map = preparation.bottoms[0], &image = preparation.bottoms[1];
    const bool square = p().has_img_size();
    grid.height = map[2];
    grid.width = map[3];
    grid.image_height = square ? p().img_size() : p().has_img_h() ? p().img_h() : image[2];
    grid.image_width = square ? p().img_size() : p().has_img_w() ? p().img_w() : image[3];
    const auto step = [&](bool own, float given, double whole, int64_t positions) -> double {
      return p().has_step() ? p().step() : own ? given : whole / static_cast<double>(positions);
    };
    grid.step_h = step(p().has_step_h(), p().step_h(), grid.image_height, map[2]);
    grid.step_w = step(p().has_step_w(), p().step_w(), grid.image_width, map[3]);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& y = pass.top[0];
    State& state = state_of<State>(pass);
    if (state.filled == y.raw()) return;
    const float* numbers = state.numbers.data<float>();
    const auto part = [&](int64_t index) { return numbers + index * boxes(); };
    on(y, [&]<typename T>() {
      parallel_for(context, y.count() / 2,
                   PriorBody<T>{state.grid, boxes(), part(0), part(1), part(2), part(3), part(4),
                                part(5), part(6), part(7), p().clip(), y.data<T>()});
    });
    state.filled = y.raw();
  }

  std::vector<float> widths_, heights_, offsets_x_, offsets_y_, shifts_x_, shifts_y_, clipped_,
      variances_;
  const bool clustered_;  // PriorBoxClustered
};

}  // namespace
REGISTER_LAYER(PriorBox, PriorBoxLayer);
REGISTER_LAYER(PriorBoxClustered, PriorBoxLayer, true);
}  // namespace crema
