#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/convert/parts.h"
#include "data/databases/given_file.h"

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
  if (idx.content.size() < 4 || big_endian(idx.content, 0) != magic)
    fail(path, ": is not an IDX file of ", kind, ": it should begin with the number ", magic,
         what_it_is(path));
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

// Images and their labels.
struct Digits {
  Idx pixels, classes;
  uint32_t count() const { return pixels.extents[0]; }
  size_t image() const { return size_t{pixels.extents[1]} * pixels.extents[2]; }
  const char* image_at(uint32_t i) const { return pixels.values + i * image(); }
  int label_at(uint32_t i) const { return static_cast<unsigned char>(classes.values[i]); }
};

Digits read_digits(const std::string& images, const std::string& labels) {
  Digits digits{read_idx(images, 2051, 3, "images"), read_idx(labels, 2049, 1, "labels")};
  require(digits.count() == digits.classes.extents[0], images, " holds ", digits.count(),
          " images, but ", labels, " ", digits.classes.extents[0], " labels");
  require(digits.image() > 0, images, ": its images have no pixels");
  return digits;
}

// Writes one record per image: fill(i, datum) sets its data and label.
template <typename Fill>
void write_records(const Digits& digits, int channels, Parts parts, Log& log, const Fill& fill) {
  const auto rows = static_cast<int>(digits.pixels.extents[1]),
             columns = static_cast<int>(digits.pixels.extents[2]);
  log.info(cat("A total of ", digits.count(), " items."));
  log.info(cat("Rows: ", rows, " Cols: ", columns));
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(rows);
  datum.set_width(columns);
  parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
    fill(static_cast<uint32_t>(index), datum);
    part.put(numbered_key(i, 8), datum, datum.label());
  });
  parts.finish(log);
  log.info(cat("Processed ", digits.count(), " files."));
}

}  // namespace

// These files do not say whether class 3 is a digit, a letter or a dress: options.format.classes
// does.
void convert_mnist(const std::string& images, const std::string& labels,
                   const std::string& database, const ConvertOptions& options, Log& log) {
  const Digits digits = read_digits(images, labels);
  std::vector<int> classes;
  for (uint32_t i = 0; i < digits.count(); ++i) classes.push_back(digits.label_at(i));
  const auto named = static_cast<int>(options.format.classes.size());
  for (uint32_t i = 0; named > 0 && i < digits.count(); ++i)
    require(classes[i] < named, labels, ": label ", classes[i], " of image ", i, ", but there are ",
            named, " names of classes, for labels 0 to ", named - 1);
  Parts parts(database, classes, false, options);
  write_records(digits, 1, std::move(parts), log, [&](uint32_t i, Datum& datum) {
    datum.set_data(digits.image_at(i), digits.image());
    datum.set_label(digits.label_at(i));
  });
}

void convert_mnist_pairs(const std::string& images, const std::string& labels,
                         const std::string& database, const ConvertOptions& options, Log& log) {
  const Digits digits = read_digits(images, labels);
  // A pair has no class of its own.
  ConvertOptions named = options;
  named.format.classes = {"different", "same"};
  Parts parts(database, std::vector<int>(digits.count(), 0), false, named);
  // The same files always give the same pairs.
  const Random random{1, 0};
  write_records(digits, 2, std::move(parts), log, [&](uint32_t i, Datum& datum) {
    const Random::Four words = random.four(i);
    const uint32_t a = words.v[0] % digits.count(), b = words.v[1] % digits.count();
    datum.set_data(digits.image_at(a), digits.image());
    datum.mutable_data()->append(digits.image_at(b), digits.image());
    datum.set_label(digits.label_at(a) == digits.label_at(b));
  });
}

}  // namespace crema
