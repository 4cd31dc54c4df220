#include "layers/detection/detection.h"

#include "device/aligned.h"
#include "device/parallel.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

struct DetectionRow {
  int first_class;
  CREMA_HD int64_t numbers() const { return kDetectionValues; }
  template <typename T>
  CREMA_HD void operator()(const Detection& d, T* y) const {
    y[0] = static_cast<T>(d.group);
    y[1] = static_cast<T>(d.label + first_class);
    y[2] = static_cast<T>(d.score);
    y[3] = static_cast<T>(d.box.x1);
    y[4] = static_cast<T>(d.box.y1);
    y[5] = static_cast<T>(d.box.x2);
    y[6] = static_cast<T>(d.box.y2);
  }
};

struct RegionRow {
  bool scored;
  CREMA_HD int64_t numbers() const { return scored ? 6 : 5; }
  template <typename T>
  CREMA_HD void operator()(const Detection& d, T* y) const {
    y[0] = static_cast<T>(d.group);
    y[1] = static_cast<T>(d.box.x1);
    y[2] = static_cast<T>(d.box.y1);
    y[3] = static_cast<T>(d.box.x2);
    y[4] = static_cast<T>(d.box.y2);
    if (scored) y[5] = static_cast<T>(d.score);
  }
};

struct ScoreRow {
  CREMA_HD int64_t numbers() const { return 1; }
  template <typename T>
  CREMA_HD void operator()(const Detection& d, T* y) const {
    y[0] = static_cast<T>(d.score);
  }
};

template <typename T, typename Row>
struct WriteRow {
  Row row;
  const Detection* found;
  T* y;
  CREMA_HD void operator()(int64_t i) const { row(found[i], y + i * row.numbers()); }
};

template <typename Row>
void write_rows(Context& context, const NmsResult& found, const Row& row, const Tensor& top) {
  const int64_t count = found.total();
  if (!found.device) {
    std::vector<float> rows(count * row.numbers());
    const WriteRow<float, Row> write{row, found.host.data(), rows.data()};
    for (int64_t i = 0; i < count; ++i) write(i);
    return from_floats(context, rows.data(), top);
  }
  on(top, [&]<typename T>() {
    parallel_for(context, count, WriteRow<T, Row>{row, found.device, top.data<T>()});
  });
}

}  // namespace

Shape write_detections(Context& context, const NmsResult& found, int64_t images, int first_class,
                       const Tensor& top) {
  const int64_t count = found.total();
  const Shape shape{1, 1, count > 0 ? count : images, kDetectionValues};
  if (count > 0) {
    write_rows(context, found, DetectionRow{first_class}, part(top, shape));
    return shape;
  }
  context.log().info("Couldn't find any detections");
  std::vector<float> rows(shape.count(), -1);
  for (int64_t n = 0; n < images; ++n) rows[n * kDetectionValues] = static_cast<float>(n);
  from_floats(context, rows.data(), part(top, shape));
  return shape;
}

void write_regions(Context& context, const NmsResult& found, const Tensor& top) {
  write_rows(context, found, RegionRow{top.shape()[1] == 6}, top);
}

void write_scores(Context& context, const NmsResult& found, const Tensor& top) {
  write_rows(context, found, ScoreRow{}, top);
}

NmsResult find_boxes(Context& context, const std::vector<Tensor>& bottoms, const Tensor& workspace,
                     const FindBoxes& find) {
  if (context.device() == Device::cpu || bottoms[0].dtype() != DType::f64)
    return find(context, bottoms, workspace.data<char>());
  Context host(Device::cpu);
  std::vector<Tensor> copies;
  for (const Tensor& bottom : bottoms) {
    copies.emplace_back(host, bottom.shape(), DType::f64);
    copy(context, bottom, copies.back());
  }
  const Tensor room(host, workspace.shape(), DType::u8);
  return find(host, copies, room.data<char>());
}

BoxWorkspace::BoxWorkspace(const NmsInput& input, char* workspace) {
  const auto all = static_cast<size_t>(input.groups * input.boxes_per_list);
  boxes = reinterpret_cast<Box*>(workspace);
  workspace += aligned(all * sizeof(Box));
  scores = reinterpret_cast<float*>(workspace);
  rest = workspace + aligned(all * sizeof(float));
}

size_t BoxWorkspace::bytes(Context& context, const NmsInput& input) {
  const auto all = static_cast<size_t>(input.groups * input.boxes_per_list);
  return aligned(all * sizeof(Box)) + aligned(all * sizeof(float)) + nms_workspace(context, input);
}

}  // namespace crema
