#include "kernels/roi/roi_pool.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "device/parallel.h"
#include "kernels/roi/roi_packs.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/roi/roi_gradients.cuh"
#endif

namespace crema {
namespace {

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

bool has_weights(RegionKind kind) { return kind != RegionKind::max && kind != RegionKind::ring; }

RegionReaders readers_of(const RegionPool& pool, int64_t regions) {
  RegionReaders readers{static_cast<int32_t>((regions + 31) / 32)};
  if (pool.kind != RegionKind::mean) return readers;
  readers.row_sets = static_cast<int32_t>(pool.rows);
  readers.column_sets = static_cast<int32_t>(pool.columns);
  return readers;
}

// Bytes of each part, in the order of the members.
struct TableSizes {
  size_t image, cells, places, holes, weights, row_readers, column_readers;
  TableSizes(const RegionPool& pool, const Shape& x, int64_t regions)
      : image(padded(regions * sizeof(int32_t))),
        cells(padded(regions * (pool.rows + pool.columns) * sizeof(Span))),
        places(padded(regions * (x[2] + x[3]) * sizeof(Span))),
        holes(padded(pool.kind == RegionKind::ring ? regions * 2 * sizeof(Span) : 0)),
        weights(padded(has_weights(pool.kind) ? (Shape{regions, pool.rows, x[2]}.count() +
                                                 Shape{regions, pool.columns, x[3]}.count()) *
                                                    sizeof(float)
                                              : 0)) {
    if (std::max({regions, pool.rows, pool.columns, x[0], x[2], x[3]}) > INT32_MAX / 32)
      fail(regions, " regions of a blob of ", x.brief(), ": they are counted in 32 bits");
    const RegionReaders readers = readers_of(pool, regions);
    row_readers = padded(readers.row_sets * x[0] * x[2] * readers.words * sizeof(uint32_t));
    column_readers = padded(readers.column_sets * x[3] * readers.words * sizeof(uint32_t));
  }
  size_t all() const {
    return image + cells + places + holes + weights + row_readers + column_readers;
  }
};

RegionTables tables_in(const RegionPool& pool, const Shape& x, int64_t regions,
                       const Tensor& memory) {
  const TableSizes sizes(pool, x, regions);
  char* at = memory.data<char>();
  const auto next = [&](size_t bytes) {
    char* const part = at;
    at += bytes;
    return part;
  };
  RegionTables t{static_cast<int32_t>(regions),      static_cast<int32_t>(pool.rows),
                 static_cast<int32_t>(pool.columns), static_cast<int32_t>(x[0]),
                 static_cast<int32_t>(x[2]),         static_cast<int32_t>(x[3])};
  t.image = reinterpret_cast<int32_t*>(next(sizes.image));
  t.cells = reinterpret_cast<Span*>(next(sizes.cells));
  t.places = reinterpret_cast<Span*>(next(sizes.places));
  t.holes = reinterpret_cast<Span*>(next(sizes.holes));
  t.weights = reinterpret_cast<float*>(next(sizes.weights));
  t.readers = readers_of(pool, regions);
  t.readers.rows = reinterpret_cast<uint32_t*>(next(sizes.row_readers));
  t.readers.columns = reinterpret_cast<uint32_t*>(next(sizes.column_readers));
  return t;
}

// A row or a column of the grid of a region.
template <typename R>
struct CellsBody {
  RegionPool pool;
  const R* regions;
  int32_t images;
  RegionTables t;

  CREMA_HD RegionSide side(const R* region, bool across, int first) const {
    const int axis = across ? 0 : 1;
    return {pool.kind,
            static_cast<float>(region[first + axis]),
            static_cast<float>(region[first + 2 + axis]),
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
    const int numbers = pool.kind == RegionKind::ring ? 9 : 5;
    const R* region = regions + static_cast<int64_t>(r) * numbers;
    const bool across = k >= t.rows;
    if (k == 0) {
      const int32_t image = whole(static_cast<float>(region[0]));
      t.image[r] = image >= 0 && image < images ? image : -1;
      if (pool.kind == RegionKind::ring) {
        t.holes[2 * r] = side(region, false, 5).ring_side();
        t.holes[2 * r + 1] = side(region, true, 5).ring_side();
      }
    }
    float* weights = nullptr;
    const RegionSide line = side(region, across, 1);
    if (pool.kind != RegionKind::max && pool.kind != RegionKind::ring)
      weights = across ? t.column_weights(r, k - t.rows) : t.row_weights(r, k);
    t.cells[index] = line.cell(across ? k - t.rows : k, weights);
  }
};

// The other way round. Rows and columns go forward, so those that read a place are neighbours.
struct PlacesBody {
  RegionTables t;
  CREMA_HD void operator()(int64_t index) const {
    const int32_t each = t.height + t.width;
    const auto r = static_cast<int32_t>(index / each), k = static_cast<int32_t>(index % each);
    const bool across = k >= t.height;
    const int32_t place = across ? k - t.height : k, count = across ? t.columns : t.rows;
    Span readers{count, 0};
    for (int32_t i = 0; i < count; ++i) {
      const Span cell = across ? t.column(r, i) : t.row(r, i);
      if (place < cell.first || place >= cell.last) continue;
      readers.first = i < readers.first ? i : readers.first;
      readers.last = i + 1;
    }
    t.places[index] = readers;
  }
};

// All channels of a place lie side by side and are treated alike.
bool by_places(const Lines& x, bool own_channels) { return x.channels_last && !own_channels; }

// Run the one that suits the device: Cells on a CPU, Packs on a GPU, where channels allow it.
template <template <typename> typename Cells, template <typename> typename Packs, typename T,
          typename Body>
void run_pool(Context& context, const Body& body, const Tensor& y, bool own_channels,
              const int32_t* index) {
  const bool together = by_places(body.out, own_channels);
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
  const bool together = by_places(gradient.in, own_channels);
  if (context.device() == Device::cpu) {
    const int32_t each = together ? 32 : 1;
    const int64_t blocks = (gradient.in.channels + each - 1) / each;
    parallel_for(context, dx.shape()[0] * blocks, Blocks<T>{gradient, each}, 1);
    return;
  }
#ifdef __CUDACC__
  const RegionTables& t = gradient.t;
  parallel_for(context, int64_t{t.regions} * (t.height + t.width), PlacesBody{t});
  mark_region_readers(context, t, own_channels);
  if (together && region_gradient_by_channels<T>(context, gradient)) return;
  parallel_for(context, dx.count(), gradient);
#endif
}

void check_images(const RegionPool& pool, const Tensor& regions, int64_t images) {
  on(regions, [&]<typename R>() {
    for (int64_t r = 0; r < regions.count() / pool.numbers(); ++r) {
      const auto image = static_cast<double>(regions.data<R>()[r * pool.numbers()]);
      require(image < static_cast<double>(images), "region ", r, " lies in image ", image,
              ", but the feature map has ", images, images == 1 ? " image" : " images",
              ", counted from 0");
    }
  });
}

}  // namespace

size_t region_pool_tables(const RegionPool& pool, const Shape& x, int64_t regions) {
  return TableSizes(pool, x, regions).all();
}

void region_pool_forward(Context& context, const RegionPool& pool, const Tensor& x,
                         const Tensor& regions, const Tensor& y, const Tensor& index,
                         const Tensor& tables) {
  const int64_t images = x.shape()[0], count = y.shape()[0];
  if (context.device() == Device::cpu) check_images(pool, regions, images);
  const RegionTables t = tables_in(pool, x.shape(), count, tables);
  if (has_weights(pool.kind))
    zero_bytes(context, t.weights, context.device(), TableSizes(pool, x.shape(), count).weights);
  on(regions, [&]<typename R>() {
    parallel_for(context, count * (pool.rows + pool.columns),
                 CellsBody<R>{pool, regions.data<R>(), static_cast<int32_t>(images), t}, 64);
  });
  on_real(x, [&]<typename T>() {
    if (pool.has_index()) {
      const auto where = index.data<int32_t>();
      run_pool<MaxCell, MaxPack, T>(context,
                                    MaxBody<T>{t, Lines(x), Lines(y), pool.kind == RegionKind::ring,
                                               x.data<T>(), y.data<T>(), where},
                                    y, false, where);
    } else {
      const bool own_channels = pool.kind == RegionKind::mean;
      run_pool<WeightedCell, WeightedPack, T>(
          context, WeightedBody<T>{t, Lines(x), Lines(y), own_channels, x.data<T>(), y.data<T>()},
          y, own_channels, nullptr);
    }
  });
}

void region_pool_backward(Context& context, const RegionPool& pool, const Tensor& index,
                          const Tensor& dy, const Tensor& dx, const Tensor& tables) {
  const RegionTables t = tables_in(pool, dx.shape(), dy.shape()[0], tables);
  on_real(dx, [&]<typename T>() {
    if (pool.has_index()) {
      const auto where = index.data<int32_t>();
      run_gradient<MaxBlock, T>(
          context, MaxGradient<T>{t, Lines(dx), Lines(dy), where, dy.data<T>(), dx.data<T>()}, dx,
          false);
    } else {
      const bool own_channels = pool.kind == RegionKind::mean;
      run_gradient<WeightedBlock, T>(
          context,
          WeightedGradient<T>{t, Lines(dx), Lines(dy), own_channels, dy.data<T>(), dx.data<T>()},
          dx, own_channels);
    }
  });
}

}  // namespace crema
