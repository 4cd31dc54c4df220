// FlagsOf: the flags that a verb takes, as a struct with a member for each.
//
//   using TimeFlags = FlagsOf<"model", "iterations">;
//   int run_time(const VerbCall& call, const TimeFlags& flags) { ... flags.iterations ... }
//
// A flag that is not in the list is no member: code that reads it does not compile. Functions that
// several verbs call take a smaller FlagsOf, which is made of any that has all of its flags. A verb
// that lacks some says so, with without().
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/flags/flag_reader.h"

namespace crema {

// A string literal as a template's argument.
template <size_t size>
struct FlagName {
  char text[size]{};
  consteval FlagName(const char (&name)[size]) { std::copy_n(name, size, text); }
};

namespace flag_types {
using string = std::string;
using int32 = int32_t;
using int64 = int64_t;
using list = std::vector<std::string>;  // a flag that may be given several times
}  // namespace flag_types

// Sets the value if the flag was given, and returns whether it was.
bool take_flag(const FlagValues& given, const char* name, std::string* value);
bool take_flag(const FlagValues& given, const char* name, flag_types::list* value);
bool take_flag(const FlagValues& given, const char* name, bool* value);
bool take_flag(const FlagValues& given, const char* name, int32_t* value);
bool take_flag(const FlagValues& given, const char* name, int64_t* value);
bool take_flag(const FlagValues& given, const char* name, double* value);

// A flag, with its default, and whether it was given: on the command line, in CREMA_FLAGS or in the
// config file.
template <FlagName name>
struct Flag;
#define FLAG(type, name, initial, help)                                                           \
  template <>                                                                                     \
  struct Flag<#name> {                                                                            \
    using string = flag_types::string;                                                            \
    using int32 = flag_types::int32;                                                              \
    using int64 = flag_types::int64;                                                              \
    using list = flag_types::list;                                                                \
    type name = initial;                                                                          \
    bool name##_given = false;                                                                    \
    void take(const FlagValues& values) { name##_given = take_flag(values, #name, &this->name); } \
  };
#include "tools/flags/flags.def"
#undef FLAG

template <typename Flags, typename... Parts>
concept HasFlags = (std::derived_from<Flags, Parts> && ...);
template <FlagName name, FlagName... list>
constexpr bool is_among = (std::same_as<Flag<name>, Flag<list>> || ...);

template <FlagName... names>
class FlagsOf : public Flag<names>... {
 public:
  FlagsOf() = default;
  explicit FlagsOf(const FlagValues& given) { (Flag<names>::take(given), ...); }
  template <HasFlags<Flag<names>...> Others>
  FlagsOf(const Others& others) : Flag<names>(others)... {}

  // Made of others that lack these flags and no more; the missing ones have their defaults.
  template <FlagName... missing, typename Others>
  static FlagsOf without(const Others& others) {
    static_assert((is_among<missing, names...> && ...) &&
                      ((HasFlags<Others, Flag<names>> != is_among<names, missing...>)&&...),
                  "without() names the flags that the other list lacks, and no others");
    FlagsOf flags;
    (copy<Flag<names>>(others, &flags), ...);
    return flags;
  }

  // In the order of -help.
  static std::vector<std::string> list() { return {names.text...}; }

 private:
  template <typename One, typename Others>
  static void copy(const Others& others, FlagsOf* flags) {
    if constexpr (HasFlags<Others, One>) static_cast<One&>(*flags) = others;
  }
};

}  // namespace crema
