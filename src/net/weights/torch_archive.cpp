#include "net/weights/torch_archive.h"

#include <algorithm>

#include "base/visible.h"
#include "net/weights/tensor_file.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

using Kind = PickleValue::Kind;

// Storages' classes with what safetensors calls their values.
const std::map<std::string_view, const char*>& storage_types() {
  static const std::map<std::string_view, const char*> types = {
      {"FloatStorage", "F32"}, {"DoubleStorage", "F64"},    {"HalfStorage", "F16"},
      {"LongStorage", "I64"},  {"BFloat16Storage", "BF16"}, {"IntStorage", "I32"},
      {"ShortStorage", "I16"}, {"CharStorage", "I8"},       {"ByteStorage", "U8"},
      {"BoolStorage", "BOOL"}};
  return types;
}

bool may_be_named(const PickleValue& function) {
  constexpr std::pair<std::string_view, std::string_view> kAllowed[] = {
      {"collections", "OrderedDict"},         {"torch", "Size"},
      {"torch._utils", "_rebuild_tensor"},    {"torch._utils", "_rebuild_tensor_v2"},
      {"torch._utils", "_rebuild_parameter"}, {"torch.nn.parameter", "Parameter"}};
  if (function.module == "torch" && storage_types().count(function.text) > 0) return true;
  return std::any_of(std::begin(kAllowed), std::end(kAllowed), [&](const auto& name) {
    return name.first == function.module && name.second == function.text;
  });
}

}  // namespace

size_t TorchArchive::read_pickle(const std::string& name, size_t at) {
  const auto check_function = [&](const PickleValue& function, size_t byte) {
    require(may_be_named(function), name, ": byte ", byte, ": the pickle names ",
            visible(function.module), ".", visible(function.text),
            ", which a dict of tensors (model.state_dict()) does not have and nothing here runs",
            kSafetensorsHint);
  };
  PickleReader reader(name, content_, values_, check_function, at);
  root_ = reader.read();
  return reader.end();
}

TorchStorage storage_of(const PickleValue& reference, const std::string& what) {
  const bool is_reference =
      reference.kind == Kind::reference && reference.items[0]->kind == Kind::tuple;
  require(is_reference, what, "its values are in no storage", kSafetensorsHint);
  // ("storage", class, key, device, count of values), in old files also the part that is seen.
  const std::vector<const PickleValue*>& parts = reference.items[0]->items;
  const bool complete = (parts.size() == 5 || parts.size() == 6) && parts[0]->text == "storage" &&
                        parts[1]->kind == Kind::function && parts[2]->kind == Kind::text &&
                        parts[4]->kind == Kind::integer;
  require(complete, what, "expected a storage with its type, key, device and size",
          kSafetensorsHint);
  const bool whole = parts.size() == 5 || parts[5]->kind == Kind::none;
  require(whole, what, "its storage is a part of another one", kSafetensorsHint);
  const auto type = storage_types().find(parts[1]->text);
  require(type != storage_types().end(), what, "expected a storage of numbers, got ",
          visible(parts[1]->text));
  const int64_t count = parts[4]->integer;
  require(count >= 0 && count < kMaxValues, what, "its storage has ", count, " values");
  return {std::string(parts[2]->text), type->second, static_cast<uint64_t>(count)};
}

}  // namespace crema
