// labels.txt in the folder in which databases of one data set are made. Each database has the names of
// its classes itself; this file shows that those of training and of validation, made by two commands,
// number them alike, and scripts count its lines.
#pragma once

#include <string>
#include <vector>

namespace crema {

class SharedClassNames {
 public:
  // Error if the file names other classes and is not to be overwritten. `from`: where these come from.
  SharedClassNames(const std::string& database, const std::vector<std::string>& names,
                   const std::string& from, bool overwrite);

  const std::string& path() const { return path_; }
  void write() const;

 private:
  std::string path_, text_;
};

}  // namespace crema
