#include "base/file_kind_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/strings.h"

namespace crema {
namespace {

// The words at the top level of a text of fields, `name: value` or `name { ... }`.
std::set<std::string> fields_of(std::string_view text) {
  std::set<std::string> fields;
  int depth = 0;
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      word.clear();
    } else if (c == '"' || c == '\'') {
      i = std::min(text.find(c, i + 1), text.size());
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else {
      if (depth == 0 && (c == ':' || c == '{') && !word.empty()) fields.insert(word);
      if (c != ' ') word.clear();
      if (c == '{') ++depth;
      if (c == '}') --depth;
    }
  }
  return fields;
}

// "path 3" or "path": a line of a list.
bool is_list_line(std::string_view line) {
  const size_t blank = line.rfind(' ');
  const std::string_view path = trim(line.substr(0, blank));
  const size_t dot = path.rfind('.');
  return dot != std::string_view::npos && dot > 0 && path.size() - dot <= 5 &&
         path.find(',') == std::string_view::npos;
}

std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    if (!line.empty()) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

FileKind prototxt_kind(std::string_view text) {
  const std::set<std::string> fields = fields_of(text);
  const auto any = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (fields.count(name) > 0) return true;
    return false;
  };
  if (any({"base_lr", "lr_policy", "max_iter", "max_epoch", "train_net", "net", "net_param",
           "test_iter", "snapshot_prefix"}))
    return {kSolverKind, "train takes it as -solver"};
  if (any({"layer", "layers", "input", "input_dim", "input_shape"}))
    return {kNetKind, "-model takes it, or `net` of a solver"};
  if (any({"item"}))
    return {"a label map", "convert_annoset takes it as -label_map_file, layers as label_map_file"};
  return {};
}

// Numbers and lengths of a message's fields, as far as they are inside `bytes`; none if it is not a
// message.
std::optional<std::map<uint64_t, int>> wire_fields(std::string_view bytes, uint64_t size) {
  std::map<uint64_t, int> kinds;  // of the first of each number
  size_t at = 0;
  const auto varint = [&]() -> std::optional<uint64_t> {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return {};
  };
  uint64_t position = 0;
  while (at < bytes.size()) {
    const auto tag = varint();
    if (!tag) break;  // end of the parsed part
    const uint64_t number = *tag >> 3;
    const int kind = static_cast<int>(*tag & 7);
    if (number == 0 || number > 100000 || (kind != 0 && kind != 1 && kind != 2 && kind != 5))
      return {};
    kinds.emplace(number, kind);
    if (kind == 0) {
      if (!varint()) break;
      position = at;
      continue;
    }
    uint64_t length = kind == 1 ? 8 : 4;
    if (kind == 2) {
      const auto given = varint();
      if (!given) break;
      length = *given;
    }
    position = at + length;
    if (length > size || position > size) return {};
    if (position >= bytes.size()) break;
    at = static_cast<size_t>(position);
  }
  return kinds;
}

}  // namespace

FileKind text_kind(std::string_view text) {
  const std::string_view line = first_line(text);
  const std::string start = lower_case(std::string(line.substr(0, 64)));
  if (starts_with(start, "<!doctype html") || starts_with(start, "<html"))
    return {"a web page", "something went wrong when it was downloaded; download it again"};
  if (starts_with(line, "version https://git-lfs"))
    return {"a pointer of Git LFS", "`git lfs pull` fetches the file itself"};
  if (starts_with(line, "#!")) return {"a script", ""};
  // A comment may look like anything.
  if (starts_with(line, "#")) {
    if (const FileKind kind = prototxt_kind(text); !kind.what.empty()) return kind;
  }
  if (is_list_line(line)) {
    const bool hdf5 =
        line.find(".h5") != std::string_view::npos || line.find(".hdf5") != std::string_view::npos;
    return hdf5 ? FileKind{"a list of HDF5 files", "a layer of type HDF5Data reads it"}
                : FileKind{"a list of files",
                           "a layer of type ImageData reads it, convert_imageset makes a database "
                           "of it"};
  }
  if (starts_with(line, "<")) return {"an XML file", "convert_annoset takes a list of such files"};
  if (starts_with(line, "{\"iteration\""))
    return {"the metrics of a training run", "crema report and crema watch show them"};
  if (starts_with(line, "{") || starts_with(line, "[")) return {"a JSON file", ""};
  if (starts_with(line, "Log file created at") ||
      (line.size() > 5 && (line[0] == 'I' || line[0] == 'W') && line[1] >= '0' && line[1] <= '9' &&
       line.find("] ") != std::string_view::npos))
    return {"the log of a training run", "crema parse_log reads it"};
  if (starts_with(line, "# 0")) return {"a list of windows", "a layer of type WindowData reads it"};
  if (starts_with(line, "import ") || starts_with(line, "from ")) return {"a script of Python", ""};
  if (const FileKind kind = prototxt_kind(text); !kind.what.empty()) return kind;
  if (line.find_first_of(",;\t") != std::string_view::npos)
    return {kTableKind, "convert_csv makes a database of it"};
  return {kTextKind, ""};
}

FileKind message_kind(std::string_view bytes, uint64_t size) {
  const FileKind kState = {kStateKind, "train takes it as -snapshot"};
  const auto fields = wire_fields(bytes, size);
  if (!fields || fields->empty()) return {kUnknownKind, ""};
  const auto is = [&](uint64_t number, int kind) {
    const auto found = fields->find(number);
    return found != fields->end() && found->second == kind;
  };
  constexpr int kNumber = 0, kBytes = 2, kFixed = 1;
  // The checksum of our own solver states, whatever other damage there is.
  const auto own = fields->lower_bound(5000);
  if (own != fields->end() && own->first < 6000 && own->second == kFixed) return kState;
  const bool shaped = (is(1, kNumber) && is(2, kNumber)) || is(7, kBytes);
  if (shaped && !is(1, kBytes) && (is(5, kBytes) || is(5, 5)))
    return {kMeanKind, "transform_param { mean_file } takes it, classify as -mean"};
  if (is(1, kNumber) && (is(7, kBytes) || is(8, kBytes)))
    return {"an ONNX model", "its weights cannot be read; export them as .safetensors"};
  if (is(1, kNumber) && (is(2, kBytes) || is(3, kBytes))) return kState;
  if (is(100, kBytes) || (is(2, kBytes) && !is(1, kNumber)))
    return {kWeightsKind, "-weights takes them"};
  return {kUnknownKind, ""};
}

}  // namespace crema
