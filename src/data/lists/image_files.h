// ImageFiles: the images that a list names, with one or several numbers as label.
#pragma once

#include "base/files.h"
#include "data/lists/image_list.h"
#include "data/loader/dataset.h"
#include "data/loader/image_cache.h"
#include "data/transforms/transform.h"

namespace crema {

// How to find, read and resize image files, in that order.
struct ImageReading {
  std::string root;    // prefix of every path
  std::string folder;  // the prototxt's; relative paths are looked up there next
  Color color = Color::color;
  int64_t height = 0, width = 0;  // 0: unchanged
  int64_t short_side = 0;  // length of the shorter side, keeping the aspect ratio; 0: unchanged
  // Location of grey images that form one more channel: the prefix of the same paths. Empty: none.
  std::string channel_root = {};
  // JPEGs that become smaller may be decoded at a half, a quarter or an eighth of their size.
  bool scaled = false;

  // Location of a path of the list.
  std::string find(const std::string& path) const {
    return find_file(root + as_listed(path, root, folder), folder);
  }
  bool resizes() const { return height > 0 || short_side > 0; }
  // Whether more than the image of a file is read.
  bool changes() const { return resizes() || !channel_root.empty(); }
  // decode() gets the file's content, and returns the size that it says the image has; an Error
  // names the file.
  ImageExtents decode(const std::string& path, const std::string& file, Color color,
                      Interpolation interpolation, Image& image) const;
  // The same without a name.
  ImageExtents decode(std::string_view file, Color color, Interpolation interpolation,
                      Image& image) const;
  // The size with the smaller side as it is to be.
  ImageExtents with_short_side(const ImageExtents& whole) const;
  // `whole`: the result of decode().
  void resize(const ImageExtents& whole, Interpolation interpolation, Image& image) const;
  void resize(Interpolation interpolation, Image& image) const {
    resize({image.channels, image.height, image.width}, interpolation, image);
  }
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

  void use_cache(std::unique_ptr<ImageCache> cache) { cache_ = std::move(cache); }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  std::optional<int64_t> class_of(int64_t record) const override;
  void add_facts(WaitingFacts& facts) const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  void read(const SampleIndex& sample_index, Record& record, Laps& laps) const;

  std::string list_;
  std::vector<ListedImage> images_;
  ImageReading reading_;
  Transform transform_;
  std::unique_ptr<ImageCache> cache_;  // null: none
};

}  // namespace crema
