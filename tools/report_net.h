// What a report shows of the net itself: its first filters, and the samples that it gets wrong.
#pragma once

#include "net/net.h"
#include "tools/report_page.h"

namespace crema {

// The weights of the first Convolution, or of an InnerProduct that reads the data, as pictures.
void add_filters(Net& net, Report* report);

// Runs a test net (built with keep_blobs) over every record of its source once, or over `batches`
// batches at most (0: no limit; 50 where a source does not know how many records it has), and
// collects the samples whose largest score is not at their label, those it was surest of first.
// Does nothing for a net without labels or scores, or whose inputs nobody fills.
void add_mistakes(Net& net, int batches, Report* report);

}  // namespace crema
