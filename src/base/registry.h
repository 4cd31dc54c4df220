// A table from names to factories, filled before main by static objects.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

// Each Tag has its own table; Maker is a function pointer or a small struct.
template <typename Tag, typename Maker>
class Registry {
 public:
  static bool add(const std::string& name, Maker maker) {
    table().emplace(name, maker);
    return true;
  }
  static bool has(const std::string& name) { return table().count(name) > 0; }
  // nullptr when the name is unknown.
  static const Maker* find(const std::string& name) {
    const auto at = table().find(name);
    return at == table().end() ? nullptr : &at->second;
  }
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& entry : table()) all.push_back(entry.first);
    return all;
  }

 private:
  static std::map<std::string, Maker>& table() {
    static std::map<std::string, Maker> entries;
    return entries;
  }
};

}  // namespace crema
