// The part of a report about the net itself: its first filters, and the samples that it gets wrong.
#pragma once

#include "net/net.h"
#include "tools/pages/report_page.h"

namespace crema {

// The weights of the first Convolution, or of an InnerProduct that reads the data, as images.
void add_filters(Net& net, Report* report);

// Runs a test net (built with keep_blobs) over every record of its source once, or over at most
// `batches` batches (0: no limit; 50 where a source does not know how many records it has), and
// collects the samples whose highest score is not at their label, the most confident first. A no-op
// for a net without labels or scores, or with unfilled inputs.
void add_mistakes(Net& net, int batches, Report* report);

}  // namespace crema
