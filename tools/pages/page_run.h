// A run as pages show it: what it recorded, and what lies in its folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solver/readers/metrics_file.h"

namespace crema {

struct PagePicture {
  std::string source;   // address for an <img>: data:image/...
  std::string caption;  // plain text
};

struct PagePictures {
  std::string title;
  int64_t iteration = -1;  // -1: not known
  std::string note{};
  std::vector<PagePicture> pictures{};
};

struct PageRun {
  std::string name;          // on this page no other has it
  const Run* run = nullptr;  // outlives the page
  std::string folder{};      // "": no folder of its own
  std::vector<PagePictures> pictures{};
  std::vector<std::string> classes{};  // their names; empty: they have numbers only
};

// pictures/*.json of a run's folder. A file that is damaged or half copied is left out, and so is a
// picture that is not in the file itself.
std::vector<PagePictures> read_pictures(const std::string& folder);

// Names of classes: the lines of labels.txt in the folder; empty where there is none.
std::vector<std::string> class_names_beside(const std::string& folder);

// The counts of a confusion: its own, or those of its file, wherever in the folder that is now;
// empty where there are none.
std::vector<std::vector<int64_t>> counts_of(const Metric& confusion, const std::string& folder);

}  // namespace crema
