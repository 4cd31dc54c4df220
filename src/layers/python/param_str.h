// param_str: the text from which a Python layer reads its settings. Authors pass it to eval, to a
// YAML or JSON reader, or use it unchanged; this reads all of these without evaluating anything:
//   {'scale': 2, "sizes": (8, 16), 'name': None}   literals of Python, JSON
//   'feat_stride': 16                              YAML, one line per key; nested by indentation
//   'scales': !!python/tuple [4, 8]                tags are ignored
//   train_10                                       any other text
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

class LayerParameter;

struct ParamField;

struct ParamValue {
  enum class Kind { none, boolean, integer, real, text, list, dict };
  Kind kind = Kind::none;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;                 // also set for an integer
  std::string text;                // as written, without quotes; of a number or a name, too
  std::vector<ParamValue> items;   // elements of a list or tuple
  std::vector<ParamField> fields;  // entries of a dict; each key once
  size_t at = 0;                   // where it starts in the text

  // nullptr: the dict has no such key, or this is no dict.
  const ParamValue* find(std::string_view key) const;
  // "the number 3", "a list of 2": for messages.
  std::string brief() const;
};

struct ParamField {
  std::string key;
  ParamValue value;
};

// Error with line and column for a text that starts like a structure and is not one. An empty text is
// none.
ParamValue read_param_str(std::string_view text);

// "line 2, column 7" of the byte `at`.
std::string place_in(std::string_view text, size_t at);

// The settings of one layer. Errors name the key, its position and the value found.
class ParamStr {
 public:
  // Reads param_str (or param_str_) of the layer's python_param.
  explicit ParamStr(const LayerParameter& message);
  explicit ParamStr(std::string text);

  const std::string& text() const { return text_; }
  const ParamValue& value() const { return value_; }
  bool has(const std::string& key) const;

  // Each takes the default for a setting that is not in the text.
  int64_t integer(const std::string& key, int64_t absent) const;
  double number(const std::string& key, double absent) const;
  bool flag(const std::string& key, bool absent) const;  // True, False, 1 or 0
  std::string word(const std::string& key, const std::string& absent) const;
  std::vector<double> numbers(const std::string& key, std::vector<double> absent) const;  // or one
  std::vector<std::string> words(const std::string& key, std::vector<std::string> absent) const;
  // Error if the text does not give it.
  int64_t needed_integer(const std::string& key) const;
  std::string needed_word(const std::string& key) const;

  // Error for a key that none of the calls above read: a native version that ignored it could
  // compute something else than the Python class.
  void refuse_others() const;

 private:
  const ParamValue* asked(const std::string& key) const;
  const ParamValue& needed(const std::string& key) const;
  [[noreturn]] void wrong(const std::string& key, const ParamValue& found,
                          const std::string& wanted) const;

  std::string text_;
  ParamValue value_;
  mutable std::set<std::string> known_;
};

}  // namespace crema
