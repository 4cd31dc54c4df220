// The filler "whitening", which reads data: the filters of a Convolution that decorrelate patches
// of its bottom (ZCA's first half; as in Page, "How to train your ResNet", 2019).
//   C = mean of p p^T over the patches p (channels x kernel) of the first training batches
//   filter i = e_i / sqrt(v_i + epsilon), for the largest eigenvalues v_i of C, eigenvectors e_i
// num_output / 2 such filters are followed by their negatives.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// Fills the parameters of `net` whose filler is "whitening", from at least 5000 images that the
// sources of `text`, the net's file, make. A no-op without such a filler; a warning if a caller
// fills Input layers. Error, with the layer's name, if filters do not fit.
void fill_from_data(Net& net, const NetParameter& text);

// Rows: the eigenvectors of a symmetric matrix of `side` rows, those of the largest eigenvalue
// first; `values`: the eigenvalues. The largest element of each row is positive.
std::vector<double> eigenvectors(std::vector<double> matrix, int64_t side,
                                 std::vector<double>* values);

}  // namespace crema
