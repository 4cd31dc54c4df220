#include "data/convert/pickle.h"

#include "base/error.h"
#include "base/files.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

using Kind = PickleValue::Kind;

// Whether a value is a call of that function with at least that many arguments. NumPy's modules
// have had two names.
bool calls(const PickleValue& value, const std::string& module, const std::string& name,
           size_t arguments) {
  if (value.kind != Kind::call) return false;
  const PickleValue& function = *value.items[0];
  const std::string numpy = "numpy.core.";
  const bool is_module = function.module == module ||
                         (starts_with(module, numpy) &&
                          function.module == "numpy._core." + module.substr(numpy.size()));
  return is_module && function.text == name && value.items[1]->items.size() >= arguments;
}

const PickleValue& argument(const PickleValue& call, size_t number) {
  return *call.items[1]->items[number];
}

// Text in UTF-8 whose characters are bytes: Python 3 stores bytes this way in protocol 2.
bool from_latin1(std::string_view text, std::string& bytes) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes.push_back(text[i]);
      continue;
    }
    const bool two = (lead == 0xC2 || lead == 0xC3) && i + 1 < text.size() &&
                     (static_cast<unsigned char>(text[i + 1]) & 0xC0) == 0x80;
    if (!two) return false;
    bytes.push_back(static_cast<char>(lead << 6 | (text[++i] & 0x3F)));
  }
  return true;
}

bool bytes_in(const PickleValue& value, std::string& bytes) {
  if (calls(value, "_codecs", "encode", 2) && argument(value, 0).kind == Kind::text &&
      argument(value, 1).text == "latin1")
    return from_latin1(argument(value, 0).text, bytes);
  bytes = value.text;
  return value.kind == Kind::text;
}

// A key as text, which may be bytes from Python 3; "" for anything else.
std::string key_in(const PickleValue& value) {
  constexpr size_t kLongest = 100;
  const PickleValue& text = calls(value, "_codecs", "encode", 2) ? argument(value, 0) : value;
  std::string key;
  if (text.kind != Kind::text || text.text.size() > kLongest || !bytes_in(value, key)) return "";
  return key;
}

bool is_byte_type(const PickleValue& value) {
  if (!calls(value, "numpy", "dtype", 1)) return false;
  const std::string_view name = argument(value, 0).text;
  return name == "u1" || name == "|u1" || name == "uint8";
}

// The parts of an array: its extents, its type, its values, and whether they are in C's order.
struct Array {
  const PickleValue *shape, *type, *values;
  bool rows_first;
};

bool array_in(const PickleValue& value, Array& array) {
  if (calls(value, "numpy.core.numeric", "_frombuffer", 4)) {  // protocol 5
    array = {&argument(value, 2), &argument(value, 1), &argument(value, 0),
             argument(value, 3).text == "C"};
    return true;
  }
  if (!calls(value, "numpy.core.multiarray", "_reconstruct", 1) || value.state == nullptr ||
      value.state->kind != Kind::tuple || value.state->items.size() != 5)
    return false;
  const std::vector<const PickleValue*>& parts = value.state->items;  // after a version
  array = {parts[1], parts[2], parts[4], parts[3]->integer == 0};
  return true;
}

}  // namespace

Pickle::Pickle(const std::string& path) : path_(path), content_(read_file(path)) {
  root_ = PickleReader(path_, content_, values_).read();
  require(root_->kind == Kind::dict, path_, ": the pickle is no dict, as those of data sets are");
}

const PickleValue& Pickle::entry(const std::string& key) const {
  const PickleValue* found = nullptr;
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < root_->items.size(); i += 2) {
    const std::string name = key_in(*root_->items[i]);
    if (name == key) found = root_->items[i + 1];
    if (names.size() < 10) names.push_back(cat('"', name, '"'));
  }
  if (found == nullptr) fail(path_, ": has no \"", key, "\"; its keys are ", join(names, ", "));
  return *found;
}

std::vector<int64_t> Pickle::integers(const std::string& key) const {
  const PickleValue& list = entry(key);
  require(list.kind == Kind::list, path_, ": \"", key, "\" is no list");
  std::vector<int64_t> numbers;
  for (const PickleValue* item : list.items) {
    if (item->kind != Kind::integer)
      fail(path_, ": item ", numbers.size(), " of \"", key, "\" is no integer");
    numbers.push_back(item->integer);
  }
  return numbers;
}

std::vector<std::string> Pickle::texts(const std::string& key) const {
  const PickleValue& list = entry(key);
  require(list.kind == Kind::list, path_, ": \"", key, "\" is no list");
  std::vector<std::string> texts;
  for (const PickleValue* item : list.items) {
    require(bytes_in(*item, texts.emplace_back()), path_, ": item ", texts.size() - 1, " of \"",
            key, "\" is no text");
  }
  return texts;
}

Pickle::Bytes Pickle::bytes(const std::string& key) const {
  Array array{};
  if (!array_in(entry(key), array)) fail(path_, ": \"", key, "\" is no NumPy array");
  require(is_byte_type(*array.type), path_, ": \"", key,
          "\" is an array of another type than uint8");
  require(array.rows_first, path_, ": \"", key,
          "\" is stored column by column; numpy.ascontiguousarray puts it row by row");
  Bytes found;
  require(bytes_in(*array.values, found.values), path_, ": the values of \"", key,
          "\" are no bytes");
  for (const PickleValue* extent : array.shape->items) {
    require(extent->kind == Kind::integer, path_, ": the shape of \"", key,
            "\" is no tuple of integers");
    found.shape.push_back(extent->integer);
  }
  const auto count = static_cast<int64_t>(found.values.size());
  require(at_most(found.shape, count) && found.shape.count() == count, path_, ": \"", key, "\" is ",
          found.shape.brief(), " but has ", count, " bytes; copy or download the file again");
  return found;
}

}  // namespace crema
