// ImageFiles: the images that a list names, with one or several numbers as label.
#pragma once

#include "base/files.h"
#include "data/lists/image_list.h"
#include "data/loader/dataset.h"
#include "data/transforms/transform.h"

namespace crema {

// How image files are found, read and resized, in that order.
struct ImageReading {
  std::string root;    // prefix of every path
  std::string folder;  // the prototxt's; relative paths are looked up there next
  Color color = Color::color;
  int64_t height = 0, width = 0;  // 0: unchanged
  int64_t short_side = 0;         // of the smaller side, keeping the aspect ratio; 0: unchanged
  // Where grey images that form one more channel are stored: the prefix of the same paths. Empty:
  // none.
  std::string channel_root = {};

  // Where a path of the list is stored.
  std::string find(const std::string& path) const {
    return find_file(root + as_listed(path, root, folder), folder);
  }
  // decode() gets the file's content; an Error names the file.
  void decode(const std::string& path, const std::string& file, Color color, Image& image) const;
  void resize(Interpolation interpolation, Image& image) const;
  // Adds the grey image with the same path. Error when its size differs.
  void add_channel(const std::string& path, Interpolation interpolation, Image& image) const;
  // Reads, decodes, resizes and adds the channel.
  void read(const std::string& path, Color color, Interpolation interpolation, Image& image) const;
};

class ImageFiles : public Dataset {
 public:
  // From lines `path label` or `path label label ...`.
  ImageFiles(const std::string& list, ImageReading reading, Transform transform);
  // From lines already read, all with the same number of labels.
  ImageFiles(const std::string& list, std::vector<ListedImage> images, ImageReading reading,
             Transform transform);

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  std::string list_;
  std::vector<ListedImage> images_;
  ImageReading reading_;
  Transform transform_;
};

}  // namespace crema
