// The files in which CIFAR-10 and CIFAR-100 are distributed.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace crema {

constexpr int kCifarSide = 32, kCifarChannels = 3;
constexpr size_t kCifarBytes = size_t{kCifarSide} * kCifarSide * kCifarChannels;  // of an image

// One set of CIFAR in a folder.
struct CifarFiles {
  std::string name;  // "cifar10" or "cifar100"
  std::vector<std::string> training{};
  std::string test{};
  bool pickled = false;     // for Python, otherwise binary
  size_t label_bytes = 1;   // in front of a binary image
  size_t label_at = 0;      // which of them is the label
  std::string label_key{};  // of a pickle
  int classes = 10;
  std::string names{};      // the file with the names of the classes, if it is there
  std::string names_key{};  // of a pickle
};

// Finds the files. coarse: the labels of CIFAR-100 are its superclasses. Error if the folder has
// neither set, or a set without superclasses.
CifarFiles find_cifar(const std::string& folder, bool coarse);

// Images, as red, green and blue planes, and their labels.
struct CifarImages {
  std::vector<const char*> images;
  std::vector<int> labels;
  std::deque<std::string> contents;  // what `images` points to
};

// The names of the classes; none where their file is missing. Error for another number of them.
std::vector<std::string> read_cifar_names(const CifarFiles& files);

// Adds the images of a file. Error names the file and the problem.
void read_cifar(const CifarFiles& files, const std::string& path, CifarImages& into);

}  // namespace crema
