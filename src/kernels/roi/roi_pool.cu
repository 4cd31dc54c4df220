#include "kernels/roi/roi_pool.h"

#include <algorithm>
#include <cstdint>

#include "base/ceil_div.h"
#include "base/error.h"
#include "device/aligned.h"
#include "device/parallel.h"
#include "kernels/roi/roi_packs.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/roi/roi_gradients.cuh"
#endif

namespace crema {
namespace {

using namespace roi;

bool has_weights(RoiPoolKind kind) { return kind != RoiPoolKind::max && kind != RoiPoolKind::ring; }

RoiReaders readers_of(const RoiPool& pool, int64_t rois) {
  RoiReaders readers{static_cast<int32_t>(ceil_div(rois, 32))};
  if (pool.kind != RoiPoolKind::mean) return readers;
  readers.row_sets = static_cast<int32_t>(pool.rows);
  readers.column_sets = static_cast<int32_t>(pool.columns);
  return readers;
}

// Bytes of each table, in the order of the members.
struct TableSizes {
  size_t image, cells, positions, holes, weights, row_readers, column_readers;
  TableSizes(const RoiPool& pool, const Shape& x, int64_t rois)
      : image(aligned(rois * sizeof(int32_t))),
        cells(aligned(rois * (pool.rows + pool.columns) * sizeof(Span))),
        positions(aligned(rois * (x[2] + x[3]) * sizeof(Span))),
        holes(aligned(pool.kind == RoiPoolKind::ring ? rois * 2 * sizeof(Span) : 0)),
        weights(aligned(has_weights(pool.kind) ? (Shape{rois, pool.rows, x[2]}.count() +
                                                  Shape{rois, pool.columns, x[3]}.count()) *
                                                     sizeof(float)
                                               : 0)) {
    if (std::max({rois, pool.rows, pool.columns, x[0], x[2], x[3]}) > INT32_MAX / 32)
      fail(rois, " regions of a blob of ", x.brief(), ": they are counted in 32 bits");
    const RoiReaders readers = readers_of(pool, rois);
    row_readers = aligned(readers.row_sets * x[0] * x[2] * readers.words * sizeof(uint32_t));
    column_readers = aligned(readers.column_sets * x[3] * readers.words * sizeof(uint32_t));
  }
  size_t all() const {
    return image + cells + positions + holes + weights + row_readers + column_readers;
  }
};

RoiTables tables_in(const RoiPool& pool, const Shape& x, int64_t rois, const Tensor& memory) {
  const TableSizes sizes(pool, x, rois);
  char* at = memory.data<char>();
  const auto next = [&](size_t bytes) {
    char* const part = at;
    at += bytes;
    return part;
  };
  RoiTables t{static_cast<int32_t>(rois),         static_cast<int32_t>(pool.rows),
              static_cast<int32_t>(pool.columns), static_cast<int32_t>(x[0]),
              static_cast<int32_t>(x[2]),         static_cast<int32_t>(x[3])};
  t.image = reinterpret_cast<int32_t*>(next(sizes.image));
  t.cells = reinterpret_cast<Span*>(next(sizes.cells));
  t.positions = reinterpret_cast<Span*>(next(sizes.positions));
  t.holes = reinterpret_cast<Span*>(next(sizes.holes));
  t.weights = reinterpret_cast<float*>(next(sizes.weights));
  t.readers = readers_of(pool, rois);
  t.readers.rows = reinterpret_cast<uint32_t*>(next(sizes.row_readers));
  t.readers.columns = reinterpret_cast<uint32_t*>(next(sizes.column_readers));
  return t;
}

// Fills the table entry of one row or column of an RoI's grid.
template <typename R>
struct CellsBody {
  RoiPool pool;
  const R* rois;
  int32_t images;
  RoiTables t;

  CREMA_HD RoiSide side(const R* roi, bool across, int first) const {
    const int axis = across ? 0 : 1;
    return {pool.kind,
            static_cast<float>(roi[first + axis]),
            static_cast<float>(roi[first + 2 + axis]),
            pool.scale,
            pool.margin,
            pool.offset,
            across ? t.columns : t.rows,
            across ? t.width : t.height,
            static_cast<int32_t>(pool.samples)};
  }

  CREMA_HD void operator()(int64_t index) const {
    const int32_t each = t.rows + t.columns;
    const auto r = static_cast<int32_t>(index / each), k = static_cast<int32_t>(index % each);
    const int numbers = pool.kind == RoiPoolKind::ring ? 9 : 5;
    const R* roi = rois + static_cast<int64_t>(r) * numbers;
    const bool across = k >= t.rows;
    if (k == 0) {
      const int32_t image = whole(static_cast<float>(roi[0]));
      t.image[r] = image >= 0 && image < images ? image : -1;
      if (pool.kind == RoiPoolKind::ring) {
        t.holes[2 * r] = side(roi, false, 5).ring_side();
        t.holes[2 * r + 1] = side(roi, true, 5).ring_side();
      }
    }
    float* weights = nullptr;
    const RoiSide line = side(roi, across, 1);
    if (pool.kind != RoiPoolKind::max && pool.kind != RoiPoolKind::ring)
      weights = across ? t.column_weights(r, k - t.rows) : t.row_weights(r, k);
    t.cells[index] = line.cell(across ? k - t.rows : k, weights);
  }
};

// The inverse: from map to grid. Spans are monotonic, so the rows or columns that read a position
// are contiguous.
struct PositionsBody {
  RoiTables t;
  CREMA_HD void operator()(int64_t index) const {
    const int32_t each = t.height + t.width;
    const auto r = static_cast<int32_t>(index / each), k = static_cast<int32_t>(index % each);
    const bool across = k >= t.height;
    const int32_t position = across ? k - t.height : k, count = across ? t.columns : t.rows;
    Span readers{count, 0};
    for (int32_t i = 0; i < count; ++i) {
      const Span cell = across ? t.column(r, i) : t.row(r, i);
      if (position < cell.begin || position >= cell.end) continue;
      readers.begin = i < readers.begin ? i : readers.begin;
      readers.end = i + 1;
    }
    t.positions[index] = readers;
  }
};

// True when all channels of a position are contiguous and treated alike.
bool by_positions(const MapLayout& x, bool own_channels) {
  return x.channels_last && !own_channels;
}

// Runs the functor for the device: Cells on a CPU, Packs on a GPU where the channels allow it.
template <template <typename> typename Cells, template <typename> typename Packs, typename T,
          typename Body>
void run_pool(Context& context, const Body& body, const Tensor& y, bool own_channels,
              const int32_t* index) {
  const bool together = by_positions(body.out, own_channels);
  const bool packs = takes_packs<T>(body.out.channels, body.x, body.y, index);
  if (together && context.device() == Device::cpu) {
    parallel_for(context, y.count() / y.shape()[1], Cells<T>{body}, 4);
  } else if (together && packs) {
    parallel_for(context, y.count() / kPackCount<T>, Packs<T>{body}, 256);
  } else {
    parallel_for(context, y.count(), body, 256);
  }
}

template <template <typename> typename Blocks, typename T, typename Gradient>
void run_gradient(Context& context, const Gradient& gradient, const Tensor& dx, bool own_channels) {
  const bool together = by_positions(gradient.in, own_channels);
  if (context.device() == Device::cpu) {
    const int32_t each = together ? 32 : 1;
    const int64_t blocks = ceil_div(gradient.in.channels, each);
    parallel_for(context, dx.shape()[0] * blocks, Blocks<T>{gradient, each}, 1);
    return;
  }
#ifdef __CUDACC__
  const RoiTables& t = gradient.t;
  parallel_for(context, int64_t{t.rois} * (t.height + t.width), PositionsBody{t});
  mark_roi_readers(context, t, own_channels);
  if (together && roi_gradient_by_channels<T>(context, gradient)) return;
  parallel_for(context, dx.count(), gradient);
#endif
}

void check_images(const RoiPool& pool, const Tensor& rois, int64_t images) {
  on(rois, [&]<typename R>() {
    for (int64_t r = 0; r < rois.count() / pool.numbers(); ++r) {
      const auto image = static_cast<double>(rois.data<R>()[r * pool.numbers()]);
      require(image < static_cast<double>(images), "region ", r, " is in image ", image,
              ", but the feature map has ", images, images == 1 ? " image" : " images",
              ", counted from 0");
    }
  });
}

}  // namespace

size_t roi_pool_tables(const RoiPool& pool, const Shape& x, int64_t rois) {
  return TableSizes(pool, x, rois).all();
}

void roi_pool_forward(Context& context, const RoiPool& pool, const Tensor& x, const Tensor& rois,
                      const Tensor& y, const Tensor& index, const Tensor& tables) {
  const int64_t images = x.shape()[0], count = y.shape()[0];
  if (context.device() == Device::cpu) check_images(pool, rois, images);
  const RoiTables t = tables_in(pool, x.shape(), count, tables);
  if (has_weights(pool.kind))
    zero_bytes(context, t.weights, context.device(), TableSizes(pool, x.shape(), count).weights);
  on(rois, [&]<typename R>() {
    parallel_for(context, count * (pool.rows + pool.columns),
                 CellsBody<R>{pool, rois.data<R>(), static_cast<int32_t>(images), t}, 64);
  });
  on_real(x, [&]<typename T>() {
    if (pool.has_index()) {
      const auto where = index.data<int32_t>();
      run_pool<MaxCell, MaxPack, T>(
          context,
          MaxBody<T>{t, MapLayout(x), MapLayout(y), pool.kind == RoiPoolKind::ring, x.data<T>(),
                     y.data<T>(), where},
          y, false, where);
    } else {
      const bool own_channels = pool.kind == RoiPoolKind::mean;
      run_pool<WeightedCell, WeightedPack, T>(
          context,
          WeightedBody<T>{t, MapLayout(x), MapLayout(y), own_channels, x.data<T>(), y.data<T>()}, y,
          own_channels, nullptr);
    }
  });
}

void roi_pool_backward(Context& context, const RoiPool& pool, const Tensor& index, const Tensor& dy,
                       const Tensor& dx, const Tensor& tables) {
  const RoiTables t = tables_in(pool, dx.shape(), dy.shape()[0], tables);
  on_real(dx, [&]<typename T>() {
    if (pool.has_index()) {
      const auto where = index.data<int32_t>();
      run_gradient<MaxBlock, T>(
          context,
          MaxGradient<T>{t, MapLayout(dx), MapLayout(dy), where, dy.data<T>(), dx.data<T>()}, dx,
          false);
    } else {
      const bool own_channels = pool.kind == RoiPoolKind::mean;
      run_gradient<WeightedBlock, T>(context,
                                     WeightedGradient<T>{t, MapLayout(dx), MapLayout(dy),
                                                         own_channels, dy.data<T>(), dx.data<T>()},
                                     dx, own_channels);
    }
  });
}

}  // namespace crema
