// The report of one or several runs as one self-contained HTML page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/pages/page.h"
#include "tools/pages/runs/page_run.h"
#include "tools/pages/runs/run_state.h"

namespace crema {

struct Report {
  std::string title;
  std::string about;                                       // which run it is, in words
  std::vector<std::string> notes;                          // mismatches
  std::vector<PageRun> runs;                               // at least one
  std::string drawing;                                     // the net as SVG; "": none
  std::vector<std::pair<std::string, std::string>> texts;  // titles and the folded parts below
};

std::string report_page(const Report& report);

// The part of a page about runs, without a heading: for one its figures, charts, confusion and
// pictures; for several a table with their states and the charts of all.
std::vector<PagePart> parts_of(const std::vector<PageRun>& runs,
                               const std::vector<RunState>& states);

// A drawing as wide as the page, which a click shows in full size; `svg` is HTML.
std::string drawing_section(const std::string& svg);

std::string warnings_of(const std::vector<std::string>& notes);

}  // namespace crema
