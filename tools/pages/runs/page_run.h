// A run on a page: its records, and the files in its folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solver/readers/metrics_file.h"
#include "tools/pages/runs/run_texts.h"

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
  std::string folder{};      // "": no run folder
  std::vector<PagePictures> pictures{};
  std::vector<std::string> classes{};  // their names; empty: they have numbers only
  RunTexts texts{};                    // if runs are compared
};

// pictures/*.json of a run's folder. A file that is damaged or half copied is left out, and so is a
// picture that is not in the file itself. `classes`: their names, for captions.
std::vector<PagePictures> read_pictures(const std::string& folder,
                                        const std::vector<std::string>& classes);
// "cat → dog 98%": the label, the net's answer and its confidence. Classes without names have numbers.
std::string mistake_caption(int64_t label, int64_t answer, int percent,
                            const std::vector<std::string>& classes);

// The class names of a run: recorded when it began, or labels.txt in its run folder. Those of
// `flag` (-labels) instead, if not "". Error if their number differs from `classes`, unless that is
// 0.
std::vector<std::string> class_names_of_run(const Run& run, const std::string& folder,
                                            const std::string& flag, size_t classes);

// The number of classes of the last confusion; 0: there is none.
size_t classes_of_confusion(const Run& run, const std::string& folder);

// The counts of a confusion: its own, or those of its file, wherever in the folder that is now;
// empty if there are none.
std::vector<std::vector<int64_t>> counts_of(const Metric& confusion, const std::string& folder);

}  // namespace crema
