#include "net/prototxt/preparation_reader.h"

#include "base/error.h"
#include "base/files.h"
#include "net/preparation.h"
#include "net/prototxt/prototxt_parse.h"

namespace crema {

namespace {

// Everything else is blank, so that lines and columns match the file.
std::string fields_in(const std::string& text) {
  const std::string_view mark = kPreparationLine;
  const std::string blank(mark.size(), ' ');
  std::string fields;
  bool any = false;
  for (const std::string& line : split(text, '\n')) {
    if (starts_with(line, mark)) {
      fields += blank + line.substr(mark.size());
      any = true;
    }
    fields += '\n';
  }
  return any ? fields : "";
}

void complete(std::string* file, const std::string& folder) {
  if (file->empty() || file->front() == '/') return;
  const std::string beside = folder == "." ? *file : folder + "/" + *file;
  if (file_exists(beside)) *file = beside;
}

}  // namespace

NetPreparation read_preparation(const std::string& text, const std::string& path) {
  NetPreparation preparation;
  if (text.find(kPreparationLine) == std::string::npos) return preparation;
  const std::string fields = fields_in(text);
  if (fields.empty()) return preparation;
  const auto positions = parse_text(fields, path, &preparation);
  const std::string folder = folder_of(path);
  for (int i = 0; i < preparation.input_size(); ++i) {
    InputPreparation& input = *preparation.mutable_input(i);
    require(input.has_name(), positions->where(cat("input[", i, "]")),
            ": which input is this? write its name: name: \"data\"");
    require((input.resize_height() > 0) == (input.resize_width() > 0),
            positions->where(cat("input[", i, "]")),
            ": resize_height and resize_width go together");
    if (input.transform_param().has_mean_file())
      complete(input.mutable_transform_param()->mutable_mean_file(), folder);
  }
  if (preparation.has_labels()) complete(preparation.mutable_labels(), folder);
  return preparation;
}

}  // namespace crema
