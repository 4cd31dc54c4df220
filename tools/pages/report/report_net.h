// The part of a report about the net itself: its first filters, and the samples that it gets wrong.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"
#include "tools/pages/runs/page_run.h"

namespace crema {

// The weights of the first Convolution, or of an InnerProduct that reads the data; no pictures if a
// net has neither. rgb: three planes are red, green and blue; otherwise blue, green and red.
PagePictures filters_of(Net& net, bool rgb);

// Runs a test net (built with keep_blobs) over every record of its source once, or over at most
// `batches` batches (0: no limit; 50 if a source does not know its number of records), and shows
// the misclassified samples, the most confident first. Without a title for a net without labels or
// scores, or with unfilled inputs.
PagePictures mistakes_of(Net& net, int batches, bool rgb, const std::vector<std::string>& classes);

}  // namespace crema
