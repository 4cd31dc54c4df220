// Making databases from the files that data sets come in.
#pragma once

#include <string>

#include "base/log.h"
#include "data/databases/source.h"
#include "data/images/image.h"

namespace crema {

// MNIST's IDX files: images and labels. Keys count from "00000000".
void convert_mnist(const std::string& images, const std::string& labels,
                   const std::string& database, Backend backend, Log& log);

// Of the same files as many pairs, drawn with equal chances, for siamese nets: two channels, one
// image each, and label 1 where both show the same class, else 0.
void convert_mnist_pairs(const std::string& images, const std::string& labels,
                         const std::string& database, Backend backend, Log& log);

// CIFAR-10's binary files in a folder, into OUT/cifar10_train_lmdb and OUT/cifar10_test_lmdb (or
// _leveldb). Keys count from "00000".
void convert_cifar(const std::string& in_folder, const std::string& out_folder, Backend backend,
                   Log& log);

struct ImagesetOptions {
  Backend backend = DataParameter::LMDB;
  bool gray = false;
  bool shuffle = false;
  int64_t resize_height = 0, resize_width = 0;  // 0: as it is
  // In their place, and with the proportions kept: the smaller side gets min_dim pixels at least,
  // and above that the larger one max_dim at most. 0: no limit.
  int64_t min_dim = 0, max_dim = 0;
  int64_t max_pixels = kMostPixels;  // of an image as it is read, and as it is stored
  bool strict = false;               // Error when an image cannot be read, and no database
  bool check_size = false;           // Error at the first image of another size
  bool encoded = false;
  std::string encode_type = "";  // "" with encoded: each file's own
};

struct ImagesetResult {
  int64_t written = 0, skipped = 0;
};

// Image files of a list with lines `path label`, where the path follows `root`. Keys are
// "00000000_path", numbered by line. An image that cannot be read is logged as an error and left
// out; how many these were is the last line.
ImagesetResult convert_imageset(const std::string& root, const std::string& list,
                                const std::string& database, const ImagesetOptions& options,
                                Log& log);

// Images with boxes, as AnnotatedDatum messages for an AnnotatedData layer: a list with lines
// `image annotation`, whose paths follow `root`; annotations are Pascal VOC's XML files.
// `label_map`: a file with a LabelMap message, of the numbers of the classes; check_label: none of
// its names and numbers may be there twice. What cannot be read is left out as above.
ImagesetResult convert_annoset(const std::string& root, const std::string& list,
                               const std::string& label_map, bool check_label,
                               const std::string& database, const ImagesetOptions& options,
                               Log& log);

}  // namespace crema
