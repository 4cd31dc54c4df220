// The numbers of classes, from files with a LabelMap message.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/data.pb.h"

namespace crema {

// Error for a file that is no text of a LabelMap, or has no item.
LabelMap read_label_map(const std::string& path);

class ClassNumbers {
 public:
  // check: names and numbers must be unique. Otherwise only a name with two numbers is an error.
  ClassNumbers(const std::string& path, bool check);
  // These names, numbered from 1. Error for a name that is there twice.
  explicit ClassNumbers(const std::vector<std::string>& names);

  // Null if the map does not have the class.
  const int* find(const std::string& name) const;
  // Error names WHERE and the names that are near.
  int of(const std::string& where, const std::string& name) const;
  // The same for a COCO category: SSD's map has its id as a name. If no name is a number, the id is
  // a label of the map.
  int of_category(const std::string& where, const std::string& id) const;
  // Its name; null if no class has the number.
  const std::string* name_of(int label) const;
  // The names of the classes from 0 on: 0 is the background, unless the map names it. Empty for a map
  // with gaps or negative numbers.
  std::vector<std::string> names() const;

 private:
  std::map<std::string, int> labels_;
  std::map<int, std::string> names_;
  bool named_by_numbers_ = false;
};

}  // namespace crema
