#include "kernels/optim/update_table.h"

#include <algorithm>

namespace crema {
namespace {

template <typename Item>
Tensor on_device(Context& context, const std::vector<Item>& items) {
  const Tensor table(context, Shape{static_cast<int64_t>(items.size() * sizeof(Item))}, DType::u8);
  copy_bytes(context, table.raw(), table.device(), items.data(), Device::cpu, table.bytes());
  return table;
}

}  // namespace

ChunkTable::ChunkTable(Context& context, const std::vector<Segment>& all,
                       const std::function<bool(const Segment&)>& chosen) {
  std::vector<Segment> segments;
  std::copy_if(all.begin(), all.end(), std::back_inserter(segments),
               [](const Segment& segment) { return segment.lr_mult != 0; });
  std::vector<Chunk> chunks;
  std::vector<SegmentSpan> spans;
  const auto count = static_cast<int32_t>(segments.size());
  for (int32_t s = 0; s < count; ++s) {
    const Segment& segment = segments[s];
    SegmentSpan span{static_cast<int32_t>(chunks.size()),
                     0,
                     s,
                     s + 1,
                     segment.lr_mult,
                     segment.shape.axes() > 0 ? static_cast<float>(segment.shape[0]) : 1};
    const int64_t elements = !chosen || chosen(segment) ? segment.count : 0;
    for (int64_t at = 0; at < elements; at += Chunk::kMax) {
      const auto length = static_cast<int32_t>(std::min(Chunk::kMax, elements - at));
      chunks.push_back({segment.offset + at, length, s, segment.lr_mult, segment.decay_mult,
                        segment.clear_gradient});
    }
    span.chunks = static_cast<int32_t>(chunks.size()) - span.first_chunk;
    while (span.layer_begin > 0 && segments[span.layer_begin - 1].layer == segment.layer)
      --span.layer_begin;
    while (span.layer_end < count && segments[span.layer_end].layer == segment.layer)
      ++span.layer_end;
    spans.push_back(span);
  }
  size_ = static_cast<int64_t>(chunks.size());
  segments_ = count;
  chunks_ = on_device(context, chunks);
  spans_ = on_device(context, spans);
}

}  // namespace crema
