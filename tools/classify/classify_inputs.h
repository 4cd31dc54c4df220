// The inputs that arguments of `classify` name: image files, lists of them, folders and databases.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/databases/source.h"
#include "data/lists/image_list.h"
#include "net/picture_preparation.h"

namespace crema {

// Images of one kind, in order: files, or the records of a database.
struct ImageSource {
  std::vector<ListedImage> files;  // their paths are those of the files
  std::shared_ptr<const Source> database;

  int64_t size() const;
  // PATH, or DATABASE:KEY.
  std::string name(int64_t index) const;
};

// Consecutive files are one source. A relative path of a list is looked up from the working
// directory, from the list's folder, and as an ImageData layer does, under `root` and in `folder`,
// the net's. Error for missing files, and for a folder without images.
std::vector<ImageSource> sources_of(const std::vector<std::string>& arguments,
                                    const std::string& root, const std::string& folder);

std::unique_ptr<Dataset> dataset_of(const ImageSource& source,
                                    const PicturePreparation& preparation);

// A sample as a net takes it, or why there is none.
struct LoadedImage {
  std::string name, error;
  std::optional<int64_t> label;  // the class that the list or the record gives
};

// Prepares `count` samples from `first` on in parallel; `data` gets as many samples of the shape
// `sample`, of which those with an error are not set. `dataset` is made from `source`.
std::vector<LoadedImage> load_images(const ImageSource& source, const Dataset& dataset,
                                     const Shape& sample, int64_t first, int64_t count,
                                     std::vector<float>* data);

}  // namespace crema
