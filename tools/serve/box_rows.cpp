#include "tools/serve/box_rows.h"

#include "layers/layer_facts.h"

namespace crema {

bool has_box_rows(const BlobInfo& output) {
  const std::vector<int64_t>& shape = output.shape;
  return facts_of(output.layer_type).kind == LayerKind::detection && shape.size() == 4 &&
         shape[0] * shape[1] == 1 && shape[3] == kBoxNumbers;
}

ServedTensor box_rows_of(const ServedTensor& output, int64_t first, int64_t images) {
  constexpr size_t kClass = 1;
  const std::vector<float>& all = output.values;
  ServedTensor own{output.name, output.shape, {}};
  for (size_t i = 0; i + kBoxNumbers <= all.size(); i += kBoxNumbers) {
    const auto image = static_cast<int64_t>(all[i]) - first;
    if (image < 0 || image >= images || all[i + kClass] < 0) continue;
    own.values.push_back(static_cast<float>(image));
    for (size_t k = 1; k < kBoxNumbers; ++k) own.values.push_back(all[i + k]);
  }
  if (own.values.empty()) {
    own.values.assign(static_cast<size_t>(images * kBoxNumbers), -1);
    for (int64_t image = 0; image < images; ++image)
      own.values[image * kBoxNumbers] = static_cast<float>(image);
  }
  own.shape[2] = static_cast<int64_t>(own.values.size()) / kBoxNumbers;
  return own;
}

}  // namespace crema
