#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

#include "exchange/c/operator_emit.h"

namespace crema {

namespace {

// Words of C99 and its headers that a blob may be called, and names that the written file has itself.
const std::set<std::string>& reserved_words() {
  static const std::set<std::string> words = {
      "auto",     "break",      "case",     "char",      "const",         "continue",
      "default",  "do",         "double",   "else",      "enum",          "extern",
      "float",    "for",        "goto",     "if",        "inline",        "int",
      "long",     "register",   "restrict", "return",    "short",         "signed",
      "sizeof",   "static",     "struct",   "switch",    "typedef",       "union",
      "unsigned", "void",       "volatile", "while",     "asm",           "main",
      "arena",    "weights",    "memory",   "shape",     "memcpy",        "memset",
      "NULL",     "NAN",        "INFINITY", "linux",     "unix",          "true",
      "false",    "bool",       "class",    "new",       "delete",        "this",
      "template", "int32_t",    "size_t",   "errno",     "stdin",         "stdout",
      "stderr",   "activation", "loss",     "iteration", "learning_rate", "correction"};
  return words;
}

}  // namespace

std::string c_float(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  // As short as it reads back.
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
    if (std::strtof(text, nullptr) == value) break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".";
  return result + "f";
}

std::string EmitGraph::identifier(const std::string& wish) {
  std::string name;
  for (const char c : wish) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 && (c & 0x80) == 0;
    if (fits || name.empty() || name.back() != '_') name += fits ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_')
    name = "v" + name;
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  if (reserved_words().count(name) > 0) name += "_blob";
  std::string unique = name;
  for (int number = 2; names_.taken.count(unique) > 0 || !identifiers_.insert(unique).second;
       ++number)
    unique = cat(name, "_", number);
  return unique;
}

int EmitGraph::add_value(const std::string& blob, const Shape& shape, CType type) {
  require(shape.count() <= std::numeric_limits<int32_t>::max(), "blob \"", blob, "\" has ",
          shape.count(), " values, and C functions count to 2147483647");
  CValue value;
  value.blob = blob;
  value.name = identifier(blob);
  value.shape = shape;
  value.type = type;
  program.values.push_back(std::move(value));
  return static_cast<int>(program.values.size()) - 1;
}

int EmitGraph::add_constant(const std::string& name, CConstant constant) {
  std::vector<int>& alike = names_.constants[name];
  for (const int id : alike) {
    const CConstant& known = program.constants[id];
    if (known.type == constant.type && known.ints == constant.ints &&
        known.floats == constant.floats)
      return id;
  }
  constant.name = identifier(cat(program.prefix, "_", name));
  names_.taken.insert(constant.name);
  program.constants.push_back(std::move(constant));
  alike.push_back(static_cast<int>(program.constants.size()) - 1);
  return alike.back();
}

}  // namespace crema
