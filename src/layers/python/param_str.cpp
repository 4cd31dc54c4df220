#include "layers/python/param_str.h"

#include <algorithm>

#include "base/error.h"
#include "proto/layer.pb.h"

namespace crema {

const ParamValue* ParamValue::find(std::string_view key) const {
  for (const auto& [name, value] : fields) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string ParamValue::brief() const {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return boolean ? "True" : "False";
    case Kind::integer:
    case Kind::real:
      return cat("the number ", text);
    case Kind::text:
      return cat("the text \"", text, "\"");
    case Kind::list:
      return cat("a list of ", items.size());
    case Kind::dict:
      return cat("a dict of ", fields.size());
  }
  return "";
}

ParamStr::ParamStr(const LayerParameter& message)
    : ParamStr(message.python_param().has_param_str_() ? message.python_param().param_str_()
                                                       : message.python_param().param_str()) {}

ParamStr::ParamStr(std::string text)
    : text_(std::move(text)), value_(read_param_str(text_)), known_{"native"} {}

const ParamValue* ParamStr::asked(const std::string& key) const {
  known_.insert(key);
  return value_.find(key);
}

bool ParamStr::has(const std::string& key) const { return asked(key) != nullptr; }

void ParamStr::wrong(const std::string& key, const ParamValue& found,
                     const std::string& wanted) const {
  fail("param_str, ", place_in(text_, found.at), ": ", key, " is ", found.brief(), ", but must be ",
       wanted);
}

const ParamValue& ParamStr::needed(const std::string& key) const {
  const ParamValue* found = asked(key);
  if (!found) {
    fail("param_str must give ", key, ", such as \"'", key, "': ...\", but is ",
         text_.empty() ? "empty" : cat("\"", text_, "\""));
  }
  return *found;
}

int64_t ParamStr::integer(const std::string& key, int64_t absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  if (found->kind == ParamValue::Kind::integer) return found->integer;
  wrong(key, *found, "a whole number");
}

int64_t ParamStr::needed_integer(const std::string& key) const {
  static_cast<void>(needed(key));
  return integer(key, 0);
}

std::string ParamStr::needed_word(const std::string& key) const {
  static_cast<void>(needed(key));
  return word(key, "");
}

double ParamStr::number(const std::string& key, double absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  if (found->kind == ParamValue::Kind::integer || found->kind == ParamValue::Kind::real)
    return found->real;
  wrong(key, *found, "a number");
}

bool ParamStr::flag(const std::string& key, bool absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  if (found->kind == ParamValue::Kind::boolean) return found->boolean;
  if (found->kind == ParamValue::Kind::integer && (found->integer == 0 || found->integer == 1))
    return found->integer == 1;
  wrong(key, *found, "True or False");
}

std::string ParamStr::word(const std::string& key, const std::string& absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  if (found->kind == ParamValue::Kind::none) return absent;
  if (found->kind == ParamValue::Kind::list || found->kind == ParamValue::Kind::dict)
    wrong(key, *found, "a text");
  return found->text;
}

std::vector<double> ParamStr::numbers(const std::string& key, std::vector<double> absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  std::vector<double> all;
  const auto take = [&](const ParamValue& item) {
    const bool is_number =
        item.kind == ParamValue::Kind::integer || item.kind == ParamValue::Kind::real;
    if (!is_number) wrong(key, item, "numbers");
    all.push_back(item.real);
  };
  if (found->kind != ParamValue::Kind::list)
    take(*found);
  else
    for (const ParamValue& item : found->items) take(item);
  return all;
}

std::vector<std::string> ParamStr::words(const std::string& key,
                                         std::vector<std::string> absent) const {
  const ParamValue* found = asked(key);
  if (!found) return absent;
  std::vector<std::string> all;
  const auto take = [&](const ParamValue& item) {
    if (item.kind == ParamValue::Kind::list || item.kind == ParamValue::Kind::dict)
      wrong(key, item, "texts");
    all.push_back(item.text);
  };
  if (found->kind != ParamValue::Kind::list)
    take(*found);
  else
    for (const ParamValue& item : found->items) take(item);
  return all;
}

void ParamStr::refuse_others() const {
  for (const auto& [key, value] : value_.fields) {
    if (known_.count(key)) continue;
    fail("param_str, ", place_in(text_, value.at), ": the native version of this layer knows no ",
         key, did_you_mean(key, {known_.begin(), known_.end()}), "; it knows ",
         join({known_.begin(), known_.end()}, ", "),
         ", and 'native': False asks for the Python class instead");
  }
  using Kind = ParamValue::Kind;
  require(value_.kind == Kind::none || value_.kind == Kind::dict, "param_str is \"", text_,
          "\", but must give keys and values, such as 'feat_stride': 16");
}

}  // namespace crema
