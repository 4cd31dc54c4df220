// Charts of the values that runs recorded.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/charts/chart.h"
#include "tools/pages/runs/page_run.h"

namespace crema {

struct RunChart {
  std::string title, note;
  std::vector<Series> series;
};

bool is_accuracy(const std::string& name);
bool is_loss(const std::string& name);
// For a test output: a loss is better the lower it is, everything else the higher.
bool is_better(const std::string& name, double value, double than);

// For one run: losses of both phases in one chart, results of tests from 0 to 1 in one, all other
// results, the learning rate, speed and waiting in one each. For several: a chart per value, with a
// line for each run.
std::vector<RunChart> charts_of(const std::vector<PageRun>& runs);

// The last iteration of all runs: the end of the x axes.
double end_of(const std::vector<PageRun>& runs);

// Its loss in training; no name.
Series loss_of(const Run& run);

}  // namespace crema
