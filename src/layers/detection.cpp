#include "layers/detection.h"

#include "tensor/part.h"

namespace crema {

Shape write_detections(Context& context, const std::vector<std::vector<Detection>>& images,
                       const Tensor& top) {
  std::vector<float> rows;
  for (size_t n = 0; n < images.size(); ++n) {
    for (const Detection& d : images[n]) {
      rows.insert(rows.end(), {static_cast<float>(n), static_cast<float>(d.label), d.score,
                               d.box.x1, d.box.y1, d.box.x2, d.box.y2});
    }
  }
  if (rows.empty()) {
    context.log().info("Couldn't find any detections");
    for (size_t n = 0; n < images.size(); ++n) {
      rows.push_back(static_cast<float>(n));
      rows.resize(rows.size() + kDetectionNumbers - 1, -1);
    }
  }
  const Shape shape{1, 1, static_cast<int64_t>(rows.size()) / kDetectionNumbers, kDetectionNumbers};
  from_floats(context, rows.data(), part(top, shape));
  return shape;
}

FoundBoxes find_boxes(Context& context, const std::vector<Tensor>& bottoms, const Tensor& workspace,
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

}  // namespace crema
