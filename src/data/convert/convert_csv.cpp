#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/convert/convert.h"
#include "data/convert/parts.h"
#include "data/convert/shared_class_names.h"
#include "data/convert/table.h"

namespace crema {
namespace {

// Channels, height and width.
std::vector<int64_t> extents_of(const std::string& path, const Table& table,
                                const std::vector<int64_t>& shape) {
  const auto width = static_cast<int64_t>(table.width());
  if (shape.empty()) return {width, 1, 1};
  std::vector<std::string> texts;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    texts.push_back(cat(extent));
    require(extent > 0 && extent <= width, "-shape ", join(texts, "x"),
            ": each extent is a number from 1 to ", width, ", the columns of ", path);
    count *= extent;
  }
  const std::string text = join(texts, "x");
  require(shape.size() == 1 || shape.size() == 3, "-shape ", text,
          ": expected the number of values, or channels x height x width, such as 1x28x28");
  require(count == width, "-shape ", text, " asks for ", count, " values, but a row of ", path,
          " has ", width,
          table.label_columns.empty() ? " (-label says which columns are labels)"
                                      : " besides the labels");
  return shape.size() == 3 ? shape : std::vector<int64_t>{count, 1, 1};
}

// "0 setosa, 1 versicolor".
std::string legend_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) texts.push_back(cat(i, " ", names[i]));
  return join(texts, ", ") + (names.size() > kMost ? ", ..." : "");
}

}  // namespace

void convert_csv(const std::string& table_path, const std::string& database,
                 const TableOptions& options, Log& log) {
  const Table table = read_table(table_path, options.labels);
  const std::vector<int64_t> extents = extents_of(table_path, table, options.shape);
  const size_t width = table.width(), each = table.label_columns.size();
  log.info(cat("A total of ", table.rows, " rows with ", width, " values and ", each,
               each == 1 ? " label." : " labels."));
  std::vector<int> classes(table.classes.begin(), table.classes.end());
  classes.resize(static_cast<size_t>(table.rows));
  ConvertOptions to = options.to;
  to.format.classes = table.class_names;
  std::optional<SharedClassNames> names;
  if (!table.class_names.empty()) {
    names.emplace(database, table.class_names, table_path, to.format.overwrite);
    log.info(cat("The names of the ", table.class_names.size(), " classes go into ", names->path(),
                 " and into the database: ", legend_of(table.class_names)));
  }
  Parts parts(database, classes, options.shuffle, to);
  Datum datum;
  datum.set_channels(static_cast<int>(extents[0]));
  datum.set_height(static_cast<int>(extents[1]));
  datum.set_width(static_cast<int>(extents[2]));
  parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
    const auto row = static_cast<size_t>(index);
    const float* const values = table.data.data() + row * width;
    if (table.bytes) {
      std::string& bytes = *datum.mutable_data();
      bytes.resize(width);
      std::transform(values, values + width, bytes.begin(),
                     [](float value) { return static_cast<char>(static_cast<uint8_t>(value)); });
    } else {
      datum.mutable_float_data()->Assign(values, values + width);
    }
    if (!table.classes.empty()) {
      datum.set_label(classes[row]);
    } else if (each > 0) {
      const float* const labels = table.labels.data() + row * each;
      datum.mutable_labels()->Assign(labels, labels + each);
    }
    part.put(numbered_key(i, 8), datum, classes[row]);
  });
  parts.finish(log);
  if (names) names->write();
  log.info(cat("Processed ", table.rows, " rows."));
}

}  // namespace crema
