#include "net/weights/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8, kMaxHeader = 100'000'000;  // the format's own limit

// Non-negative integers of a JSON array.
bool read_counts(const Json& tensor, const char* key, std::vector<uint64_t>* counts) {
  const auto found = tensor.find(key);
  if (found == tensor.end() || !found->is_array()) return false;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned()) return false;
    counts->push_back(value.get<uint64_t>());
  }
  return true;
}

struct Described {
  TensorFile::Entry entry;
  uint64_t begin = 0, end = 0;  // bytes behind the header
};

Described read_entry(const std::string& what, const Json& tensor) {
  TensorFile::Entry entry;
  std::vector<uint64_t> dims, offsets;
  const bool complete = tensor.is_object() && tensor.contains("dtype") &&
                        tensor["dtype"].is_string() && read_counts(tensor, "shape", &dims) &&
                        read_counts(tensor, "data_offsets", &offsets) && offsets.size() == 2;
  require(complete, what, "expected dtype, shape and two data_offsets in the header");
  entry.dtype = tensor["dtype"].get<std::string>();
  const uint64_t width = dtype_width(entry.dtype);
  require(width > 0, what, "unknown dtype ", visible(entry.dtype));
  // 2^48 bytes are more than any file; products below it cannot overflow.
  constexpr uint64_t kMax = uint64_t{1} << 48;
  uint64_t bytes = width;
  for (uint64_t dim : dims) {
    require(dim < kMax && (dim == 0 || bytes < kMax / dim), what, "its shape is too large");
    bytes *= dim;
    entry.shape.push_back(static_cast<int64_t>(dim));
  }
  require(offsets[0] <= offsets[1] && offsets[1] < kMax, what, "data_offsets ", offsets[0], " to ",
          offsets[1], " are no range of bytes");
  require(offsets[1] - offsets[0] == bytes, what, "data_offsets span ", offsets[1] - offsets[0],
          " bytes, but ", entry.dtype, " of shape ", entry.shape.brief(), " takes ", bytes);
  return {std::move(entry), offsets[0], offsets[1]};
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : file_(path) {
  uint64_t length = 0;
  const bool has_length = file_.read(0, &length, kLengthBytes) == kLengthBytes;
  const char* hint =
      "; is it a safetensors file? In Python: safetensors.torch.save_file(model.state_dict(), "
      "\"weights.safetensors\")";
  require(has_length, path, ": has ", file_.size(), " bytes, too few for a header", hint);
  require(length <= kMaxHeader && length <= file_.size() - kLengthBytes, path,
          ": the header would take ", length, " bytes, but the file has ", file_.size(), hint);
  std::string text(length, '\0');
  require(file_.read(kLengthBytes, text.data(), length) == length, path, ": is cut short");
  const Json header = Json::parse(text, nullptr, false);
  require(header.is_object(), path, ": the header is not JSON", hint);
  const uint64_t data = kLengthBytes + length;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string what = cat(path, ": tensor \"", visible(name), "\": ");
    Described described = read_entry(what, tensor);
    entries_[name] = std::move(described.entry);
    ranges_[name] = {data + described.begin, data + described.end};
  }
  check_offsets(data);
}

void Safetensors::check_offsets(uint64_t data) const {
  std::vector<std::map<std::string, Range>::const_pointer> sorted;
  for (const auto& entry : ranges_) {
    require(entry.second.end <= file_.size(), path(), ": tensor \"", visible(entry.first),
            "\": ends at byte ", entry.second.end, ", but the file has ", file_.size(),
            "; was it downloaded whole?");
    if (entry.second.end > entry.second.begin) sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](auto a, auto b) { return a->second.begin < b->second.begin; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    require(sorted[i]->second.begin >= sorted[i - 1]->second.end, path(), ": tensor \"",
            visible(sorted[i]->first), "\": begins at byte ", sorted[i]->second.begin - data,
            " of the data, inside \"", visible(sorted[i - 1]->first), '"');
  }
}

std::vector<float> Safetensors::values(const std::string& name) const {
  const Range& range = ranges_.at(name);
  const std::string what = cat(path(), ": tensor \"", visible(name), "\": ");
  std::vector<char> bytes(range.end - range.begin);
  require(file_.read(range.begin, bytes.data(), bytes.size()) == bytes.size(), what,
          "the file became shorter");
  return floats_of(bytes, entries_.at(name).dtype, what);
}

void write_safetensors(const std::string& path, std::vector<SafetensorsEntry> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  Json header = {{"__metadata__", {{"format", "pt"}}}};  // without it transformers refuses the file
  uint64_t end = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    const uint64_t begin = end;
    end += dtype_width(tensor.entry.dtype) * static_cast<uint64_t>(tensor.entry.shape.count());
    require(!header.contains(tensor.name), path, ": two tensors would be \"", visible(tensor.name),
            "\"");
    header[tensor.name] = {{"dtype", tensor.entry.dtype},
                           {"shape", tensor.entry.shape.dims()},
                           {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    fail(path, ": a name in it is not UTF-8, which the format requires");
  }
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write(&length, kLengthBytes);
  file.write(text.data(), text.size());
  for (const SafetensorsEntry& tensor : tensors) {
    const std::string bytes = tensor.bytes();
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

}  // namespace crema
