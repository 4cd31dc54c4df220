#include "base/error.h"
#include "base/files.h"
#include "data/convert.h"
#include "data/database_writer.h"

namespace crema {
namespace {

// An IDX file of bytes: a magic number, the extents, the values; numbers are big-endian.
struct Idx {
  std::string content;
  std::vector<uint32_t> extents;
  const char* values;
};

uint32_t big_endian(const std::string& content, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number = (number << 8) | static_cast<unsigned char>(content[at + i]);
  return number;
}

Idx read_idx(const std::string& path, uint32_t magic, size_t axes, const char* kind) {
  Idx idx;
  idx.content = read_file(path);
  require(!starts_with(idx.content, "\x1f\x8b"), path, ": is packed; unpack it with gunzip");
  const size_t header = 4 * (1 + axes);
  require(idx.content.size() >= 4 && big_endian(idx.content, 0) == magic, path,
          ": is not an IDX file of ", kind, ": it should begin with the number ", magic);
  require(idx.content.size() >= header, path, ": ends inside its header");
  size_t count = 1;
  for (size_t axis = 0; axis < axes; ++axis) {
    idx.extents.push_back(big_endian(idx.content, 4 * (1 + axis)));
    count *= idx.extents.back();
  }
  require(idx.content.size() == header + count, path, ": its header promises ", count, " bytes of ",
          kind, ", but there are ", idx.content.size() - header, "; copy or download it again");
  idx.values = idx.content.data() + header;
  return idx;
}

}  // namespace

void convert_mnist(const std::string& images, const std::string& labels,
                   const std::string& database, Backend backend, Log& log) {
  const Idx pixels = read_idx(images, 2051, 3, "images"),
            classes = read_idx(labels, 2049, 1, "labels");
  const uint32_t count = pixels.extents[0], rows = pixels.extents[1], columns = pixels.extents[2];
  require(count == classes.extents[0], images, " holds ", count, " images, but ", labels, " ",
          classes.extents[0], " labels");
  require(rows > 0 && columns > 0, images, ": its images have no pixels");
  const std::unique_ptr<DatabaseWriter> writer = create_database(database, backend);
  log.info(cat("A total of ", count, " items."));
  log.info(cat("Rows: ", rows, " Cols: ", columns));
  Datum datum;
  datum.set_channels(1);
  datum.set_height(static_cast<int>(rows));
  datum.set_width(static_cast<int>(columns));
  const size_t image = size_t{rows} * columns;
  for (uint32_t i = 0; i < count; ++i) {
    datum.set_data(pixels.values + i * image, image);
    datum.set_label(static_cast<unsigned char>(classes.values[i]));
    writer->put(numbered_key(i, 8), datum);
  }
  writer->finish();
  log.info(cat("Processed ", count, " files."));
}

}  // namespace crema
