// What a report shows of the net itself: its first filters, and the samples that it gets wrong.
#pragma once

#include "net/net.h"
#include "tools/report_page.h"

namespace crema {

// The weights of the first Convolution, or of an InnerProduct that reads the data, as pictures.
void add_filters(Net& net, Report* report);

// Runs `batches` of a test net (built with keep_blobs) and collects the samples whose largest score
// is not at their label, those it was surest of first. Does nothing for a net without labels or
// scores.
void add_mistakes(Net& net, int batches, Report* report);

}  // namespace crema
