// Attention among imported layers: products of matrices between projections become one
// MultiHeadAttention.
#pragma once

#include "exchange/onnx/import_layers.h"

namespace crema {

// For a product softmax(Q K' * scale) V between learned projections, however its heads were cut and
// turned. Does nothing if the layer cannot express it. second: the product with V.
void find_attention(ImportLinks& links, const ImportedLayer& second);

}  // namespace crema
