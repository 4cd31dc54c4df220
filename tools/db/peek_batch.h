// Samples as pictures: the batch that a net's data layer makes, or records as they are.
#pragma once

#include <string>
#include <vector>

#include "data/databases/class_names.h"
#include "data/images/sheet.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

struct PeekOptions {
  int count = 32;          // of records
  bool red_first = false;  // the order of three channels; otherwise blue comes first
  ClassNames names;        // class names; none: those of the data, otherwise numbers
};

// The planes of a sample as a picture: one or three of them as its colours, of four the first three,
// any other number, and single values, side by side. `low` becomes black and `high` white.
Picture picture_of_planes(const float* values, int64_t channels, int64_t height, int64_t width,
                          float low, float high, bool red_first);

// The first records of a database, with their boxes. Real numbers are stretched from the least to
// the largest.
std::vector<SheetCell> peek_records(const std::string& database, const PeekOptions& options);

using PeekFlags = FlagsOf<"model", "batch", "phase", "level", "stage", "set">;

// The first batch of the net in -model, made by its first data layer with its whole
// transform_param; mean and scale are undone for display. `database`: instead of the layer's own,
// if not empty. Error for a label without a name.
std::vector<SheetCell> peek_batch(const std::string& database, const PeekOptions& options,
                                  const PeekFlags& flags, ProgramLog& log);

}  // namespace crema
