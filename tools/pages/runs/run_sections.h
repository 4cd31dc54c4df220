// The sections of a page about runs: figures, charts, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/runs/page_run.h"
#include "tools/pages/runs/run_state.h"

namespace crema {

// The figures of one run side by side.
std::string figure_tiles(const Run& run);
// For several: one row per run with the settings in which they differ, last and best values, and
// the colour of its lines, the best run first; from three runs on also a drawing of settings and
// results.
std::string runs_table(const std::vector<PageRun>& runs, const std::vector<RunState>& states);
std::string state_pill(const RunState& state);
std::string chart_sections(const std::vector<PageRun>& runs);
// The last confusion of each of its test nets.
std::string confusion_sections(const PageRun& run);
std::string picture_section(const PagePictures& pictures);
// "98.52%"
std::string percent(double fraction);
// A value of a test as its name suggests: accuracies in percent.
std::string test_value(const std::string& name, double value);
// Tests without those of single classes, which have a chart.
std::vector<TestFigure> main_tests(const RunFigures& figures);
std::string speed_text(double speed);
// Events of the run: losses that jump, rollbacks, skipped updates, an early stop. Plain text.
std::vector<std::string> incidents(const PageRun& run);
// A run in words, from its first start: net, files, time; "" if it recorded none.
std::string described(const Run& run);

// A confusion as HTML: a table of up to 20 classes, otherwise the most frequent confusions.
std::string confusion_table(const std::vector<std::vector<int64_t>>& counts,
                            const std::vector<std::string>& classes);

}  // namespace crema
