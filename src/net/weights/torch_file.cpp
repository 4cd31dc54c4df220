#include "net/weights/torch_file.h"

#include <algorithm>
#include <cstring>

#include "base/random_access_file.h"
#include "base/visible.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

using Kind = PickleValue::Kind;

bool is_call(const PickleValue& value, std::string_view module, std::string_view name,
             size_t arguments) {
  return value.kind == Kind::call && value.items[0]->module == module &&
         value.items[0]->text == name && value.items[1]->items.size() >= arguments;
}

// Keys and values of a dict or an OrderedDict.
using Pairs = std::vector<std::pair<std::string, const PickleValue*>>;
bool read_pairs(const PickleValue& value, Pairs* pairs) {
  const bool ordered = is_call(value, "collections", "OrderedDict", 0);
  if (value.kind != Kind::dict && !ordered) return false;
  for (size_t i = ordered ? 2 : 0; i + 1 < value.items.size(); i += 2) {
    const PickleValue& key = *value.items[i];
    if (key.kind != Kind::text) return false;
    pairs->emplace_back(std::string(key.text), value.items[i + 1]);
  }
  return true;
}

// The call that makes a tensor, also inside that of a parameter; null for anything else.
const PickleValue* tensor_in(const PickleValue& value) {
  const PickleValue* tensor = &value;
  if (is_call(value, "torch._utils", "_rebuild_parameter", 1) ||
      is_call(value, "torch.nn.parameter", "Parameter", 1))
    tensor = value.items[1]->items[0];
  const bool is_tensor = is_call(*tensor, "torch._utils", "_rebuild_tensor_v2", 4) ||
                         is_call(*tensor, "torch._utils", "_rebuild_tensor", 4);
  return is_tensor ? tensor : nullptr;
}

// Non-negative integers of a tuple, which may be inside torch.Size.
bool read_counts(const PickleValue& value, std::vector<uint64_t>* counts) {
  const bool is_size = is_call(value, "torch", "Size", 1);
  const PickleValue& tuple = is_size ? *value.items[1]->items[0] : value;
  if (tuple.kind != Kind::tuple) return false;
  for (const PickleValue* item : tuple.items) {
    if (item->kind != Kind::integer || item->integer < 0) return false;
    counts->push_back(static_cast<uint64_t>(item->integer));
  }
  return true;
}

// Whether values are contiguous in row-major order.
bool in_order(const Shape& shape, const std::vector<uint64_t>& strides) {
  uint64_t step = 1;
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[static_cast<size_t>(axis)] != step) return false;
    step *= static_cast<uint64_t>(shape[axis]);
  }
  return true;
}

std::string listed_keys(const Pairs& pairs) {
  constexpr size_t kShown = 8;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(pairs.size(), kShown); ++i)
    names.push_back(cat('"', visible(pairs[i].first), '"'));
  return join(names, ", ") + (pairs.size() > kShown ? ", ..." : "");
}

// The dict of tensors: the file's own, or that of a checkpoint.
Pairs state_dict_of(const PickleValue& root, const std::string& path) {
  Pairs pairs;
  require(read_pairs(root, &pairs), path,
          ": holds no dict with names as keys; expected torch.save(model.state_dict(), FILE)");
  for (const char* key : {"state_dict", "model_state_dict", "model"}) {
    for (const auto& [name, value] : pairs) {
      Pairs inner;
      if (name == key && read_pairs(*value, &inner)) return inner;
    }
  }
  for (const auto& [name, value] : pairs) {
    if (tensor_in(*value) == nullptr) {
      fail(path, ": \"", visible(name), "\" is no tensor, and there is no \"state_dict\", ",
           "\"model_state_dict\" or \"model\" that is a dict; the keys are ", listed_keys(pairs));
    }
  }
  return pairs;
}

// The prefix that DataParallel adds to every name.
void strip_parallel(Pairs* pairs) {
  const std::string prefix = "module.";
  const bool all = std::all_of(pairs->begin(), pairs->end(),
                               [&](const auto& pair) { return starts_with(pair.first, prefix); });
  if (!all) return;
  for (auto& pair : *pairs) pair.first.erase(0, prefix.size());
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : path_(path) {
  std::string start(kLegacyMagic.size(), '\0');
  RandomAccessFile(path).read(0, start.data(), start.size());
  archive_ = start == kLegacyMagic ? open_torch_legacy(path) : open_torch_zip(path);
  Pairs pairs = state_dict_of(archive_->root(), path);
  strip_parallel(&pairs);
  for (const auto& [name, value] : pairs) {
    const PickleValue* tensor = tensor_in(*value);
    if (tensor == nullptr) fail(what(name), "is no tensor", kSafetensorsHint);
    add(name, *tensor);
  }
}

std::string TorchFile::what(const std::string& name) const {
  return cat(path_, ": tensor \"", visible(name), "\": ");
}

void TorchFile::add(const std::string& name, const PickleValue& tensor) {
  const std::vector<const PickleValue*>& arguments = tensor.items[1]->items;
  const std::string where = what(name);
  Place place;
  place.storage = storage_of(*arguments[0], where);
  archive_->check(place.storage, where);
  std::vector<uint64_t> dims;
  const bool complete = arguments[1]->kind == Kind::integer && arguments[1]->integer >= 0 &&
                        read_counts(*arguments[2], &dims) &&
                        read_counts(*arguments[3], &place.strides) &&
                        dims.size() == place.strides.size() && dims.size() <= kMaxBlobAxes;
  require(complete, where, "expected an offset, a shape of at most ", kMaxBlobAxes,
          " axes and as many strides");
  place.offset = static_cast<uint64_t>(arguments[1]->integer);
  const uint64_t count = place.storage.count;
  Entry entry{place.storage.dtype, {}};
  for (const uint64_t dim : dims) entry.shape.push_back(static_cast<int64_t>(dim));
  require(at_most(entry.shape, static_cast<int64_t>(count)), where, "of shape ",
          entry.shape.brief(), " has more values than its storage, which has ", count,
          "; save a copy of its own: tensor.contiguous()");
  // The last value, step by step, so that no product can overflow.
  uint64_t last = place.offset;
  bool inside = entry.shape.count() == 0 || last < count;
  for (size_t axis = 0; inside && entry.shape.count() > 0 && axis < dims.size(); ++axis) {
    const uint64_t steps = dims[axis] - 1, stride = place.strides[axis];
    inside = steps == 0 || stride <= (count - 1 - last) / steps;
    if (inside) last += steps * stride;
  }
  require(inside, where, "with offset ", place.offset, " leaves its storage of ", count, " values");
  entries_[name] = std::move(entry);
  places_[name] = std::move(place);
}

std::vector<float> TorchFile::values(const std::string& name) const {
  const Place& place = places_.at(name);
  const Entry& entry = entries_.at(name);
  std::vector<char> stored = archive_->read(place.storage, what(name));
  const size_t width = dtype_width(entry.dtype);
  const size_t size = static_cast<size_t>(entry.shape.count()) * width;
  if (size == 0) return {};
  if (in_order(entry.shape, place.strides)) {
    const auto begin = stored.begin() + static_cast<std::ptrdiff_t>(place.offset * width);
    stored.erase(stored.begin(), begin);
    stored.resize(size);
    return floats_of(stored, entry.dtype, what(name));
  }
  std::vector<char> bytes(size);
  // Row-major: the last axis moves first.
  std::vector<uint64_t> index(place.strides.size());
  uint64_t from = place.offset;
  for (size_t to = 0; to < bytes.size(); to += width) {
    std::memcpy(bytes.data() + to, stored.data() + from * width, width);
    for (size_t axis = index.size(); axis-- > 0;) {
      from += place.strides[axis];
      if (++index[axis] < static_cast<uint64_t>(entry.shape[static_cast<int>(axis)])) break;
      from -= index[axis] * place.strides[axis];
      index[axis] = 0;
    }
  }
  return floats_of(bytes, entry.dtype, what(name));
}

}  // namespace crema
