// Converters: create databases from the files in which datasets are distributed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/databases/database_writer.h"
#include "data/images/image.h"

namespace crema {

struct ConvertOptions {
  ConvertOptions() = default;
  ConvertOptions(Backend backend) : format(backend) {}
  ConvertOptions(DatabaseFormat kind) : format(kind) {}

  DatabaseFormat format;
  // Two databases instead of one: the records for training, a share (below 1) or a number of them,
  // and the others for validation. Each has its share of every class, in shuffled order. 0: one
  // database. data/convert/parts.h tells their names.
  double split = 0;
  uint64_t seed = 1;  // seed of the split, and of shuffling
};

// MNIST's IDX files: images and labels. Keys count from "00000000".
void convert_mnist(const std::string& images, const std::string& labels,
                   const std::string& database, const ConvertOptions& options, Log& log);

// The same files as the same number of uniformly drawn pairs, for siamese nets: two channels, one
// image each, and label 1 if both have the same class, otherwise 0.
void convert_mnist_pairs(const std::string& images, const std::string& labels,
                         const std::string& database, const ConvertOptions& options, Log& log);

// The files of CIFAR-10 or CIFAR-100 in a folder, binary or pickled for Python, into
// OUT/cifar10_train_lmdb and OUT/cifar10_test_lmdb, or cifar100_..., ..._leveldb, ..._hdf5. Keys
// count from "00000". coarse: CIFAR-100's labels are those of the 20 superclasses.
void convert_cifar(const std::string& in_folder, const std::string& out_folder,
                   const ConvertOptions& options, Log& log, bool coarse = false);

struct ImagesetOptions {
  ConvertOptions to{};
  bool gray = false;
  bool shuffle = false;
  int64_t resize_height = 0, resize_width = 0;  // 0: unchanged
  // JPEGs of at least twice that size are first decoded at a half, a quarter or an eighth of
  // theirs.
  bool scaled_decoding = false;
  // Instead of these, keeping the aspect ratio: the smaller side gets at least min_dim pixels, but
  // the larger one at most max_dim, which takes precedence. 0: no limit.
  int64_t min_dim = 0, max_dim = 0;
  int64_t max_pixels = kMaxPixels;  // limit for an image as read, and as stored
  bool strict = false;              // Error when an image cannot be read, and then no database
  bool check_size = false;          // Error at the first image with another size
  bool encoded = false;
  std::string encode_type = "";  // "" with encoded: each file's own format
  // Rotates images as their EXIF data says. An encoded file that must be rotated is encoded again.
  bool exif = true;
  // Not converted to 3 channels of 8 bits: one channel stays one, alpha is the fourth, and more
  // bits become real numbers.
  bool as_stored = false;
  int threads = 0;  // that read and decode; 0: one per processor
};

struct ImagesetResult {
  int64_t written = 0, skipped = 0;
};

// Images from a list of `path label` lines or CSV, where paths are relative to `root`. Keys are
// "00000000_path", numbered by line. Several labels, or labels that are no integers, become
// Datum.labels. An image that cannot be read is logged as an error and left out; the last log line
// gives the number of these. The database does not depend on the number of threads.
ImagesetResult convert_imageset(const std::string& root, const std::string& list,
                                const std::string& database, const ImagesetOptions& options,
                                Log& log);

// The same without a list: `root` has a folder for each class. Classes are numbered in the order of
// their names, which are written to labels.txt in the folder of the database. Error, before any
// work, if that names other classes and is not to be overwritten.
ImagesetResult convert_class_folders(const std::string& root, const std::string& database,
                                     const ImagesetOptions& options, Log& log);

// A table of numbers, CSV or similar; its first line may name the columns.
struct TableOptions {
  ConvertOptions to{};
  bool shuffle = false;
  // The columns with labels, by name or number from 0 (from the last: -1); the others are the data.
  std::vector<std::string> labels{};
  std::vector<int64_t> shape{};  // extents of a row's data, one or three; none: all in a row
};

// Rows become records with keys from "00000000". Data that are all integers from 0 to 255 become
// bytes, others floats. Error names TABLE:LINE:COLUMN.
void convert_csv(const std::string& table, const std::string& database, const TableOptions& options,
                 Log& log);

// Where boxes around objects come from: a file of Pascal VOC's, a text file of YOLO's or SSD's or a
// JSON file of SSD's for each image, or one COCO file for all (data/convert/annotations/annotations.h).
enum class AnnotationFormat { voc, coco, yolo, text, json };

// Images with boxes, as AnnotatedDatum messages for an AnnotatedData layer. `list` has the images
// and the files of their boxes, with paths relative to `root`; for COCO it is the file with all
// boxes. `label_map`: a file with a LabelMap message, with the numbers of the classes; check_label:
// its names and numbers must be unique. Unreadable files are skipped as above.
ImagesetResult convert_annoset(const std::string& root, const std::string& list,
                               const std::string& label_map, bool check_label,
                               const std::string& database, const ImagesetOptions& options,
                               Log& log, AnnotationFormat format = AnnotationFormat::voc);

// Images with a class each, in the same messages; `list` is that of convert_imageset.
ImagesetResult convert_annoset_of_classes(const std::string& root, const std::string& list,
                                          const std::string& database,
                                          const ImagesetOptions& options, Log& log);

struct LabelMapOptions {
  std::optional<AnnotationFormat> format{};  // format of `source`; none: a text of class names
  bool include_background = false;           // as label 0
  std::string delimiter = " ";               // between name, label and the name for people
  bool overwrite = false;                    // a map with other labels
};

// Writes the LabelMap of a data set: of a text with a line `name` for each class, numbered from 1, or
// `name label` or `name label shown`, or of the annotations that convert_annoset reads. Error names
// SOURCE:LINE.
void create_label_map(const std::string& root, const std::string& source, const std::string& path,
                      const LabelMapOptions& options, Log& log);

}  // namespace crema
