#include "kernels/core/onednn.h"

#include <algorithm>
#include <cassert>

#include "base/ceil_div.h"
#include "base/error.h"
#include "tensor/shape_limits.h"

namespace crema::onednn {
namespace {

using Dims = dnnl::memory::dims;

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl::memory::data_type::f32;
    case DType::i32:
      return dnnl::memory::data_type::s32;
    case DType::u8:
      return dnnl::memory::data_type::u8;
    default:
      fail("oneDNN has no ", name_of(dtype));
  }
}

// A layout in oneDNN's own terms.
struct Layout {
  Dims dims, padded, strides, inner_sizes, inner_axes;
};

Layout layout_of(const Shape& shape, const Format& format) {
  Layout layout;
  layout.dims = layout.padded = shape.dims();
  const int axes = shape.axes();
  if (format.order == Order::blocked) {
    const Blocking& blocking = *format.blocking;
    layout.padded = blocking.padded_dims;
    layout.strides = blocking.strides;
    layout.inner_sizes = blocking.inner_sizes;
    layout.inner_axes.assign(blocking.inner_axes.begin(), blocking.inner_axes.end());
    return layout;
  }
  const bool last = format.order == Order::channels_last && axes >= 3;
  layout.strides.assign(axes, 1);
  int64_t stride = last ? shape[1] : 1;
  for (int axis = axes - 1; axis >= 0; --axis) {
    if (last && axis == 1) continue;
    layout.strides[axis] = stride;
    stride *= shape[axis];
  }
  return layout;
}

// Splits off the groups as an axis before O / groups.
Layout split_groups(const Layout& whole, int64_t groups) {
  Layout split = whole;
  int64_t block = 1;
  for (size_t i = 0; i < whole.inner_axes.size(); ++i) {
    if (whole.inner_axes[i] == 0) block *= whole.inner_sizes[i];
  }
  const int64_t each = whole.dims[0] / groups;
  split.dims[0] = each;
  split.dims.insert(split.dims.begin(), groups);
  if (each == 1) {  // blocks of O are blocks of groups
    split.padded.insert(split.padded.begin() + 1, 1);
    split.strides.insert(split.strides.begin() + 1, whole.strides[0]);
    for (auto& axis : split.inner_axes) axis = axis == 0 ? 0 : axis + 1;
    return split;
  }
  assert(each % block == 0);
  split.padded[0] = each;
  split.padded.insert(split.padded.begin(), groups);
  split.strides.insert(split.strides.begin(), each / block * whole.strides[0]);
  for (auto& axis : split.inner_axes) ++axis;
  return split;
}

// The inverse; none when the groups are not laid out like one axis O.
std::optional<Layout> join_groups(const Layout& split) {
  Layout whole = split;
  const int64_t groups = split.dims[0], each = split.dims[1];
  int64_t group_block = 1, block = 1;
  for (size_t i = 0; i < split.inner_axes.size(); ++i) {
    if (split.inner_axes[i] == 0) group_block *= split.inner_sizes[i];
    if (split.inner_axes[i] == 1) block *= split.inner_sizes[i];
  }
  whole.dims.erase(whole.dims.begin());
  whole.dims[0] = groups * each;
  whole.padded.erase(whole.padded.begin());
  whole.strides.erase(whole.strides.begin());
  for (auto& axis : whole.inner_axes) axis = std::max<int64_t>(axis - 1, 0);
  if (each == 1 && block == 1 && split.padded[1] == 1) {
    whole.padded[0] = split.padded[0];
    whole.strides[0] = split.strides[0];
    return whole;
  }
  const bool follow = group_block == 1 && split.padded[0] == groups && split.padded[1] == each &&
                      each % block == 0 && split.strides[0] == each / block * split.strides[1];
  if (!follow) return std::nullopt;
  whole.padded[0] = groups * each;
  return whole;
}

#if DNNL_VERSION_MAJOR >= 3

std::optional<Layout> read(const Desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return std::nullopt;
  return Layout{desc.get_dims(), desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(),
                desc.get_inner_idxs()};
}

bool same(const Layout& a, const Layout& b) {
  for (size_t axis = 0; axis < a.dims.size(); ++axis) {
    if (a.padded[axis] != b.padded[axis]) return false;
    if (a.padded[axis] != 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return a.inner_sizes == b.inner_sizes && a.inner_axes == b.inner_axes;
}

// oneDNN accepts blocked layouts by name only: tries all names until one gives this layout. Empty
// when none does.
Desc make_desc(const Layout& layout, dnnl::memory::data_type type) {
  if (layout.inner_sizes.empty()) return Desc(layout.dims, type, layout.strides);
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    const Desc desc(layout.dims, type, static_cast<dnnl::memory::format_tag>(tag),
                    /*allow_empty=*/true);
    if (!desc) continue;
    const std::optional<Layout> found = read(desc);
    if (found && same(*found, layout)) return desc;
  }
  return {};
}

#else

std::optional<Layout> read(const Desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.offset0 != 0 || data.extra.flags != 0)
    return std::nullopt;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  return Layout{Dims(data.dims, data.dims + data.ndims),
                Dims(data.padded_dims, data.padded_dims + data.ndims),
                Dims(blocking.strides, blocking.strides + data.ndims),
                Dims(blocking.inner_blks, blocking.inner_blks + blocking.inner_nblks),
                Dims(blocking.inner_idxs, blocking.inner_idxs + blocking.inner_nblks)};
}

Desc make_desc(const Layout& layout, dnnl::memory::data_type type) {
  Dims dense(layout.dims.size(), 1);
  for (size_t axis = dense.size() - 1; axis > 0; --axis)
    dense[axis - 1] = dense[axis] * layout.dims[axis];
  Desc desc(layout.dims, type, dense);
  std::copy(layout.padded.begin(), layout.padded.end(), desc.data.padded_dims);
  dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  std::copy(layout.strides.begin(), layout.strides.end(), blocking.strides);
  blocking.inner_nblks = static_cast<int>(layout.inner_sizes.size());
  std::copy(layout.inner_sizes.begin(), layout.inner_sizes.end(), blocking.inner_blks);
  std::copy(layout.inner_axes.begin(), layout.inner_axes.end(), blocking.inner_idxs);
  return desc;
}

#endif

// The layout of a single tap: the spatial axes dropped.
Layout one_tap(const Layout& weights, size_t axes) {
  Layout tap = weights;
  for (Dims* values : {&tap.dims, &tap.padded, &tap.strides}) values->resize(axes);
  return tap;
}

void exchange_axes(Layout& layout, size_t a, size_t b) {
  for (Dims* values : {&layout.dims, &layout.padded, &layout.strides})
    std::swap((*values)[a], (*values)[b]);
  for (auto& axis : layout.inner_axes) {
    axis = axis == static_cast<int64_t>(a) ? b : axis == static_cast<int64_t>(b) ? a : axis;
  }
}

Dims grouped_dims(const Shape& shape, int64_t groups) {
  Dims dims = shape.dims();
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  return dims;
}

}  // namespace

std::string too_large(const Shape& activations) {
  // Measured: generating the code of the weight gradient takes 20 to 80 us per column.
  constexpr int64_t kMaxPositions = int64_t{1} << 18;
  const Shape& shape = activations;
  for (int axis = 2; axis < shape.axes(); ++axis) {
    if (shape[axis] > kMaxPositions)
      return cat("an axis of ", shape[axis], " elements, at most ", kMaxPositions);
  }
  Shape image = shape, positions = shape;
  image[0] = sizeof(float);
  if (shape.axes() > 1) positions[1] = 1;
  if (!at_most(image, INT32_MAX)) return "images of 2 GiB or more";
  return at_most(positions, INT32_MAX) ? "" : "2^31 positions or more";
}

std::string too_large_weights(const Shape& weights) {
  constexpr int64_t kBlock = 16;  // channels are padded with zeros to whole blocks
  Shape whole = weights;
  for (int axis = 0; axis < std::min(2, whole.axes()); ++axis)
    whole[axis] = ceil_div(whole[axis], kBlock) * kBlock;
  whole.push_back(sizeof(float));
  return at_most(whole, INT32_MAX) ? "" : "weights of 2 GiB or more";
}

Desc describe(const Shape& shape, DType dtype, const Format& format) {
  return make_desc(layout_of(shape, format), type_of(dtype));
}

Desc describe_any(const Shape& shape, DType dtype) {
  return Desc(shape.dims(), type_of(dtype), dnnl::memory::format_tag::any);
}

Desc describe_weights(const Shape& shape, const Format& format, int64_t groups) {
  const Layout layout = layout_of(shape, format);
  return make_desc(groups > 1 ? split_groups(layout, groups) : layout,
                   dnnl::memory::data_type::f32);
}

Desc describe_any_weights(const Shape& shape, int64_t groups) {
  return Desc(grouped_dims(shape, groups), dnnl::memory::data_type::f32,
              dnnl::memory::format_tag::any);
}

Desc describe_integers(const Shape& shape, bool is_signed, const Format& format) {
  return make_desc(layout_of(shape, format),
                   is_signed ? dnnl::memory::data_type::s8 : dnnl::memory::data_type::u8);
}

Desc describe_integer_weights(const Shape& shape, int64_t groups) {
  const Layout layout = layout_of(shape, Format::row_major());
  return make_desc(groups > 1 ? split_groups(layout, groups) : layout, dnnl::memory::data_type::s8);
}

Desc describe_any_integer_weights(const Shape& shape, int64_t groups) {
  return Desc(grouped_dims(shape, groups), dnnl::memory::data_type::s8,
              dnnl::memory::format_tag::any);
}

std::optional<Format> weights_format(const Desc& desc, const Shape& shape, int64_t groups) {
  for (const Format& known : {Format::row_major(), Format::channels_last()}) {
    if (desc == describe_weights(shape, known, groups)) return known;
  }
  std::optional<Layout> layout = read(desc);
  if (layout && groups > 1) layout = join_groups(*layout);
  if (!layout) return std::nullopt;
  Blocking blocking;
  blocking.padded_dims = layout->padded;
  blocking.strides = layout->strides;
  blocking.inner_sizes = layout->inner_sizes;
  blocking.inner_axes.assign(layout->inner_axes.begin(), layout->inner_axes.end());
  const Format format{Order::blocked, std::make_shared<const Blocking>(std::move(blocking))};
  if (describe_weights(shape, format, groups) != desc) return std::nullopt;
  return format;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

namespace {

void append_relu(dnnl::post_ops* after, float slope) {
#if DNNL_VERSION_MAJOR >= 3
  after->append_eltwise(dnnl::algorithm::eltwise_relu, slope, 0);
#else
  after->append_eltwise(1, dnnl::algorithm::eltwise_relu, slope, 0);
#endif
}

}  // namespace

dnnl::primitive_attr attributes_with_relu(float slope) {
  return attributes_with_sum(Desc(), slope);
}

dnnl::primitive_attr attributes_with_sum(const Desc& added, std::optional<float> slope) {
  dnnl::primitive_attr attributes = onednn::attributes();
  dnnl::post_ops after;
  if (!added.is_zero()) after.append_binary(dnnl::algorithm::binary_add, added);
  if (slope) append_relu(&after, *slope);
  attributes.set_post_ops(after);
  return attributes;
}

dnnl::primitive_attr attributes_of_integers(const std::vector<float>& factors, int64_t groups,
                                            const Desc& added, std::optional<float> slope) {
  dnnl::primitive_attr attributes = attributes_with_sum(added, slope);
#if DNNL_VERSION_MAJOR >= 3
  (void)factors;
  attributes.set_scales_mask(DNNL_ARG_WEIGHTS, groups > 1 ? 0b11 : 0b1);
#else
  (void)groups;
  constexpr int kChannels = 1 << 1;
  attributes.set_output_scales(kChannels, factors);
#endif
  return attributes;
}

dnnl::primitive_attr attributes_that_add() {
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  after.append_sum(1);
  attributes.set_post_ops(after);
  return attributes;
}

Call::Call(const Engine& on, dnnl::primitive primitive,
           const std::vector<std::pair<int, Desc>>& arguments)
    : primitive_(std::move(primitive)) {
  for (const auto& [argument, desc] : arguments) {
    if (desc.get_size() == 0) continue;  // no bias, no scratch memory
    memory_.emplace(argument, dnnl::memory(desc, on.engine, DNNL_MEMORY_NONE));
  }
}

void Call::run(Engine& on, std::initializer_list<std::pair<int, void*>> addresses) {
  for (const auto& [argument, address] : addresses) {
    const auto at = memory_.find(argument);
    if (at != memory_.end()) at->second.set_data_handle(address);
  }
  primitive_.execute(on.stream, memory_);
}

Call reorder_call(const Engine& on, const Desc& from, const Desc& to, bool add) {
  const dnnl::reorder::primitive_desc plan(on.engine, from, on.engine, to,
                                           add ? attributes_that_add() : dnnl::primitive_attr());
  return Call(on, dnnl::reorder(plan), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

std::optional<Mirror> Mirror::make(const Engine& on, const Desc& from, const Desc& to,
                                   bool groups) {
  const std::optional<Layout> source = read(from), destination = read(to);
  const size_t axes = groups ? 3 : 2;
  const auto blocks_taps = [&](const Layout& layout) {
    return std::any_of(layout.inner_axes.begin(), layout.inner_axes.end(),
                       [&](int64_t axis) { return axis >= static_cast<int64_t>(axes); });
  };
  if (!source || !destination || blocks_taps(*source) || blocks_taps(*destination))
    return std::nullopt;
  Layout destination_tap = one_tap(*destination, axes);
  exchange_axes(destination_tap, axes - 2, axes - 1);
  const Desc source_desc = make_desc(one_tap(*source, axes), dnnl::memory::data_type::f32);
  const Desc destination_desc = make_desc(destination_tap, dnnl::memory::data_type::f32);
  if (source_desc.is_zero() || destination_desc.is_zero()) return std::nullopt;

  Mirror mirror;
  mirror.tap_ = reorder_call(on, source_desc, destination_desc);
  int64_t taps = 1;
  for (size_t axis = axes; axis < source->dims.size(); ++axis) taps *= source->dims[axis];
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t rest = tap, at_source = 0, at_destination = 0;
    for (size_t axis = source->dims.size(); axis-- > axes;) {
      const int64_t extent = source->dims[axis], index = rest % extent;
      rest /= extent;
      at_source += index * source->strides[axis];
      at_destination += (extent - 1 - index) * destination->strides[axis];
    }
    mirror.offsets_.emplace_back(at_source * sizeof(float), at_destination * sizeof(float));
  }
  return mirror;
}

void Mirror::run(Engine& on, void* from, void* to) {
  for (const auto& [source, destination] : offsets_) {
    tap_.run(on, {{DNNL_ARG_FROM, static_cast<char*>(from) + source},
                  {DNNL_ARG_TO, static_cast<char*>(to) + destination}});
  }
}

}  // namespace crema::onednn
