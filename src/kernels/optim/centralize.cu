#include "kernels/optim/centralize.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/move/reorder.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {
namespace {

#ifdef __CUDACC__
// One warp per row.
template <typename T>
__global__ void centralize_rows(const Centralizer::Row* rows, int64_t count, T* values) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (at >= count) return;
  const Centralizer::Row row = rows[at];
  T* const x = values + row.begin;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = lane; i < row.count; i += 32) sum += static_cast<double>(x[i]);
  const T mean = static_cast<T>(warp_all(sum, Plus{}) / static_cast<double>(row.count));
#pragma unroll 4
  for (int64_t i = lane; i < row.count; i += 32) x[i] -= mean;
}
#endif

template <typename T>
void centralize_each(Context& context, const Centralizer::Row* rows, int64_t count, T* values) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), centralize_rows<T>,
                  {static_cast<unsigned>(ceil_div(count, 8)), 256}, rows, count, values);
  }
#endif
  (void)context;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t at = 0; at < count; ++at) {
    T* const x = values + rows[at].begin;
    const int64_t length = rows[at].count;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < length; ++i) sum += static_cast<double>(x[i]);
    const T mean = static_cast<T>(sum / static_cast<double>(length));
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) x[i] -= mean;
  }
}

void add_rows(const Shape& shape, int64_t offset, std::vector<Centralizer::Row>* rows) {
  const int64_t each = shape.count() / shape[0];
  for (int64_t row = 0; row < shape[0]; ++row) rows->push_back({offset + row * each, each});
}

}  // namespace

Centralizer::Centralizer(Context& context, const std::vector<Segment>& segments, DType dtype) {
  std::vector<Row> rows;
  int64_t largest = 0;
  for (const Segment& segment : segments) {
    const Shape& shape = segment.shape;
    if (segment.lr_mult == 0 || shape.axes() < 2 || shape.count() <= shape[0]) continue;
    const bool in_rows = segment.format.order != Order::blocked && segment.count == shape.count();
    if (in_rows) {
      add_rows(shape, segment.offset, &rows);
      continue;
    }
    std::vector<Row> plain;
    add_rows(shape, 0, &plain);
    reordered_.push_back({segment, rows_on_device(context, plain)});
    largest = std::max(largest, shape.count());
  }
  rows_ = rows_on_device(context, rows);
  if (largest > 0) plain_ = Tensor(context, Shape{largest}, dtype);
}

Centralizer::Rows Centralizer::rows_on_device(Context& context, const std::vector<Row>& rows) {
  Rows result{Tensor(context, Shape{static_cast<int64_t>(rows.size() * sizeof(Row))}, DType::u8),
              static_cast<int64_t>(rows.size())};
  copy_bytes(context, result.list.raw(), result.list.device(), rows.data(), Device::cpu,
             result.list.bytes());
  return result;
}

void Centralizer::centralize(Context& context, const Rows& rows, const Tensor& values) {
  if (rows.count == 0) return;
  on(values, [&]<typename T>() {
    centralize_each(context, rows.list.data<Row>(), rows.count, values.data<T>());
  });
}

void Centralizer::run(Context& context, const Tensor& diff) const {
  centralize(context, rows_, diff);
  for (const Reordered& one : reordered_) {
    const size_t offset = static_cast<size_t>(one.segment.offset) * size_of(diff.dtype());
    const Tensor stored(diff.memory(), offset, one.segment.shape, diff.dtype(), one.segment.format);
    const Tensor plain(plain_.memory(), 0, one.segment.shape, diff.dtype());
    reorder(context, stored, plain);
    centralize(context, one.rows, plain);
    reorder(context, plain, stored);
  }
}

}  // namespace crema
