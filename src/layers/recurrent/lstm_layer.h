// LSTM, as shared with ConvLSTM: the pointwise part of a step.
#pragma once

#include "layers/recurrent/recurrent_layer.h"

namespace crema {

class LstmLayer : public RecurrentLayer {
 public:
  LstmLayer() : RecurrentLayer(4, 2) {}

 protected:
  // Clips the gradients of the gates' pre-activations; 0: none.
  virtual float bound() const { return 0; }

  void step(Context& context, const Forward& pass, int64_t t) const override;
  void step_backward(Context& context, const Backward& pass, int64_t t) const override;
};

}  // namespace crema
