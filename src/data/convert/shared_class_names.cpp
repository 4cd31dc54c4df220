#include "data/convert/shared_class_names.h"

#include "base/error.h"
#include "base/files.h"
#include "data/databases/class_names.h"

namespace crema {
namespace {

std::string folder_of_database(std::string database) {
  while (database.size() > 1 && database.back() == '/') database.pop_back();
  return folder_of(database);
}

}  // namespace

SharedClassNames::SharedClassNames(const std::string& database,
                                   const std::vector<std::string>& names, const std::string& from,
                                   bool overwrite)
    : path_(cat(folder_of_database(database), "/", kClassNamesFile)),
      text_(text_of_class_names(names)) {
  if (!file_exists(path_) || overwrite || read_text(path_) == text_) return;
  fail(path_, ": names other classes than ", from, " has, so one of the databases in this folder ",
       "would have wrong numbers; choose another folder, or -overwrite");
}

void SharedClassNames::write() const { write_file_atomically(path_, text_); }

}  // namespace crema
