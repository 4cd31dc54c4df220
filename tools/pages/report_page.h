// The report of a training as one self-contained HTML page: curves, filters, mistakes.
#pragma once

#include <string>
#include <vector>

#include "solver/readers/metrics_file.h"

namespace crema {

struct Mistake {
  std::string picture;  // address for an <img>
  int64_t label = 0, predicted = 0;
  double confidence = 0;  // probability that the net gave to its answer
};

struct Report {
  std::string title;
  std::string run;                 // which run it is, in words
  std::vector<std::string> notes;  // mismatches
  std::vector<Metric> metrics;
  std::string filters_title;
  std::vector<std::string> filters;  // addresses for <img>
  std::vector<Mistake> mistakes;     // those shown, worst first
  int64_t wrong = 0, tested = 0;     // samples
};

std::string report_page(const Report& report);

}  // namespace crema
