#include "net/prototxt/number_hints.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>

#include "base/strings.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

bool takes_reals(const pb::FieldDescriptor& field) {
  return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT ||
         field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// A decimal number and nothing else.
std::optional<double> plain_number(std::string_view text) {
  if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// 10,000 or 10_000, with three digits after each mark.
bool is_grouped(std::string_view text, char mark) {
  size_t at = text.find(mark);
  if (at == 0 || at > 3) return false;
  for (; at != text.npos; at = text.find(mark, at + 1)) {
    const size_t next = std::min(text.find(mark, at + 1), text.size());
    if (next - at != 4) return false;
  }
  return true;
}

std::string without(std::string text, char mark) {
  text.erase(std::remove(text.begin(), text.end(), mark), text.end());
  return text;
}

std::string number_text(double number, bool real) {
  if (!real && (number != std::floor(number) || number > 1e15)) return "";
  return real ? cat(number) : cat(static_cast<int64_t>(number));
}

// 10k, 1.5M.
std::optional<double> with_unit(const std::string& text) {
  const char unit = text.back();
  const double factor = unit == 'k' || unit == 'K' ? 1e3 : unit == 'm' || unit == 'M' ? 1e6 : 0;
  const auto number = plain_number(std::string_view(text).substr(0, text.size() - 1));
  if (factor == 0 || !number) return std::nullopt;
  return *number * factor;
}

std::string number_as_accepted(std::string text, bool real) {
  if (text[0] == '+') text.erase(0, 1);
  if (std::count(text.begin(), text.end(), '_') > 0) text = without(text, '_');
  if (std::count(text.begin(), text.end(), ',') > 0) {
    if (!real && is_grouped(text, ',')) {
      text = without(text, ',');
    } else if (std::count(text.begin(), text.end(), ',') == 1 && text.find('.') == text.npos) {
      text[text.find(',')] = '.';
    }
  }
  if (text.empty()) return "";
  if (const auto number = plain_number(text)) return real ? text : number_text(*number, false);
  if (const auto number = with_unit(text)) return number_text(*number, real);
  const size_t slash = text.find('/');
  const bool fraction = real && slash != text.npos && plain_number(trim(text.substr(0, slash))) &&
                        plain_number(trim(text.substr(slash + 1)));
  return fraction ? text : "";
}

std::string flag_as_accepted(const std::string& text) {
  static const std::set<std::string> yes = {"true", "yes", "on", "1"},
                                     no = {"false", "no", "off", "0"};
  const std::string word = lower_case(text);
  return yes.count(word) > 0 ? "true" : no.count(word) > 0 ? "false" : "";
}

std::string name_as_accepted(const pb::EnumDescriptor& type, const std::string& text) {
  std::string upper = text;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string& name : {text, upper}) {
    if (type.FindValueByName(name)) return name;
  }
  return "";
}

}  // namespace

bool takes_numbers(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_STRING:
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
    case pb::FieldDescriptor::CPPTYPE_ENUM:
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return false;
    default:
      return true;
  }
}

std::string as_accepted(const pb::FieldDescriptor& field, std::string_view written) {
  std::string text(trim(written));
  if (text.empty()) return "";
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL) return flag_as_accepted(text);
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM)
    return name_as_accepted(*field.enum_type(), text);
  if (!takes_numbers(field)) return "";
  const bool is_unsigned = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_UINT32 ||
                           field.cpp_type() == pb::FieldDescriptor::CPPTYPE_UINT64;
  const bool negative = text[0] == '-';
  if (negative) text.erase(0, 1);
  if (text.empty() || (negative && is_unsigned)) return "";
  const std::string number = number_as_accepted(text, takes_reals(field));
  return negative && !number.empty() ? "-" + number : number;
}

std::string write_hint(const pb::FieldDescriptor& field, std::string_view written) {
  const std::string accepted = as_accepted(field, written);
  return accepted.empty() ? "" : cat("; write ", field.name(), ": ", accepted);
}

}  // namespace crema
