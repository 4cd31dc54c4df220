// Distillation: what `teacher` in the solver's file adds to the trained net.
#pragma once

#include <string>

#include "net/net.h"
#include "net/prototxt/prototxt.h"

namespace crema {

class Distillation {
 public:
  // check_compression() has passed. Reads the teacher's file; Error, with the position, if it cannot be used.
  // `file` must outlive this.
  Distillation(Context& context, const SolverFile& file);

  // Makes the text that of the layers of options.state, the teacher's and the losses between them. options.where
  // then gives their positions; the teacher's layers are frozen.
  void add_to(NetFile* net, NetOptions* options) const;
  // Loads the teacher's weights into its layers of that net.
  void load_weights(Net& net) const;

 private:
  Context& context_;
  const SolverFile& file_;
  const Teacher& p_;
  std::string path_;
  NetParameter deployed_;  // the teacher for use
  NetParameter teacher_;   // the same without its Input
  std::string input_;      // the blob that it reads
};

}  // namespace crema
