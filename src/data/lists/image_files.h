// ImageFiles: the images that a list names, with one number or several as label.
#pragma once

#include "base/files.h"
#include "data/lists/image_list.h"
#include "data/loader/samples.h"
#include "data/transforms/transform.h"

namespace crema {

// How image files are found, read and resized, in that order.
struct ImageReading {
  std::string root;    // put before every path
  std::string folder;  // of the prototxt, where relative paths are looked up next
  Color color = Color::color;
  int64_t height = 0, width = 0;  // 0: as it is
  int64_t short_side = 0;         // of the smaller side, keeping the proportions; 0: as it is
  // Where grey images lie that are one more channel: put before the same paths. Empty: there are
  // none.
  std::string channel_root = {};

  // Where a path of a list lies.
  std::string find(const std::string& path) const {
    return find_file(root + as_listed(path, root, folder), folder);
  }
  // Error names the file, of which decode() gets the content.
  void decode(const std::string& path, const std::string& file, Color color, Image& image) const;
  void resize(Interpolation interpolation, Image& image) const;
  // Adds the grey image of the same path. Error where its size is another.
  void add_channel(const std::string& path, Interpolation interpolation, Image& image) const;
  // All of it.
  void read(const std::string& path, Color color, Interpolation interpolation, Image& image) const;
};

class ImageFiles : public Samples {
 public:
  // Of lines `path label` or `path label label ...`.
  ImageFiles(const std::string& list, ImageReading reading, Transform transform);
  // Of lines already read, with as many labels each.
  ImageFiles(const std::string& list, std::vector<ListedImage> images, ImageReading reading,
             Transform transform);

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const Turn& turn) const override;
  std::string how_to_equalize() const override;
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  std::string list_;
  std::vector<ListedImage> images_;
  ImageReading reading_;
  Transform transform_;
};

}  // namespace crema
