#include "tools/flags/flags_of.h"

#include <charconv>

namespace crema {

namespace {

// gflags has checked the text.
template <typename T>
bool take_number(const FlagValues& given, const char* name, T* value) {
  std::string text;
  if (!take_flag(given, name, &text)) return false;
  std::from_chars(text.data(), text.data() + text.size(), *value);
  return true;
}

}  // namespace

bool take_flag(const FlagValues& given, const char* name, flag_types::list* value) {
  const auto found = given.find(name);
  if (found == given.end()) return false;
  *value = found->second;
  return true;
}

bool take_flag(const FlagValues& given, const char* name, std::string* value) {
  flag_types::list values;
  if (!take_flag(given, name, &values)) return false;
  *value = values[0];
  return true;
}

bool take_flag(const FlagValues& given, const char* name, bool* value) {
  std::string text;
  if (!take_flag(given, name, &text)) return false;
  *value = text == "true";
  return true;
}

bool take_flag(const FlagValues& given, const char* name, int32_t* value) {
  return take_number(given, name, value);
}

bool take_flag(const FlagValues& given, const char* name, int64_t* value) {
  return take_number(given, name, value);
}

bool take_flag(const FlagValues& given, const char* name, double* value) {
  return take_number(given, name, value);
}

}  // namespace crema
