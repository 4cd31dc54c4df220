// NamedImages: data sets in which a name identifies several files of one size, an image and its
// label maps for example, found by their folders and extensions. Files are read whole and keep
// their size.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/loader/dataset.h"

namespace crema {

// One of the files of a name: before + name + after.
struct NamedFile {
  enum class Kind {
    bgr,         // three channels of an image, minus their means: blue, green, red
    rgb,         // the same: red, green, blue
    log_depth,   // the logarithm of a grey image, of up to 16 bits, minus mean[0]
    png_labels,  // the numbers of a grey or indexed PNG
    mat_labels,  // a matrix of a MATLAB file
  };
  Kind kind = Kind::bgr;
  std::string before, after;
  std::array<double, 3> mean = {};
  std::string variable;                        // name in the MATLAB file (data/lists/mat_file.h)
  std::function<float(double)> label_of = {};  // the label of a number; empty: itself

  int64_t channels() const { return kind == Kind::bgr || kind == Kind::rgb ? 3 : 1; }
};

class NamedImages : public Dataset {
 public:
  // `list`: a text with a name on each line. `files`: at least one.
  NamedImages(const std::string& list, std::vector<NamedFile> files);

  int64_t size() const override { return static_cast<int64_t>(names_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override { return "one image is a batch"; }
  void add_facts(WaitingFacts& facts) const override;
  // The data is the first file; the labels are the channels of all others, (C, H, W).
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  const std::string& name(const SampleIndex& sample_index) const;

  std::string list_;
  std::vector<std::string> names_;
  std::vector<int64_t> lines_;
  std::vector<NamedFile> files_;
};

}  // namespace crema
