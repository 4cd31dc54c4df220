// The sections of a page about runs: figures, charts, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/page_run.h"

namespace crema {

// The figures of one run side by side.
std::string figure_tiles(const Run& run);
// Of several: a row each with last and best values, and the colour that its lines have. states:
// HTML, one a run.
std::string runs_table(const std::vector<PageRun>& runs, const std::vector<std::string>& states);
std::string chart_sections(const std::vector<PageRun>& runs);
// The last confusion of each of its test nets.
std::string confusion_sections(const PageRun& run);
std::string picture_section(const PagePictures& pictures);
// What happened on the way: rollbacks, updates left out, an early stop. Plain text.
std::vector<std::string> incidents(const Run& run);
// A run in words, from its first start: net, files, when; "" where it recorded none.
std::string described(const Run& run);

// A confusion as HTML: a table of up to 20 classes, else the confusions that occur most.
std::string confusion_table(const std::vector<std::vector<int64_t>>& counts,
                            const std::vector<std::string>& classes);

}  // namespace crema
