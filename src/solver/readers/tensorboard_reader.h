// TensorboardReader: writes event files, from which TensorBoard shows a training while it runs.
//   scalars     train/loss, train/learning_rate, train/NAME of outputs, test/NAME, test1/NAME of the
//               second test net, epoch/NAME, train/iterations_per_second, train/data_wait
//   images      filters, mistakes
//   graph       the layers of the training net
//   histograms  weights/LAYER/INDEX, gradients/LAYER/INDEX
//   hparams     the solver's fields, to compare runs by; how the run ended
// A folder is for one run: each start writes a file of its own, and what the folder's files hold of
// iterations from that of the start on is outdated, which TensorBoard minds.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "solver/events/events.h"
#include "solver/readers/record_file.h"
#include "solver/readers/tensorboard_file.h"

namespace crema {

class TensorboardReader : public EventReader {
 public:
  // Makes the folder with the first event that is written. If writing fails, it warns, and the
  // training continues.
  TensorboardReader(Log& log, const std::string& folder)
      : file_(log, [folder] { return new_tensorboard_file(folder); }) {}
  void read(const Event& event) override;

 private:
  void write(const tensorboard::Event& event);

  RecordFile file_;
  bool begun_ = false;
  std::optional<tensorboard::Event> waiting_;  // a display, until its learning rate arrives
};

}  // namespace crema
