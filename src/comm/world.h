// World: the ranks that a launcher has started, as a Communicator.
#pragma once

#include <memory>

#include "comm/launcher.h"
#include "device/communicator.h"

namespace crema {

class World : public Communicator {
 public:
  using Communicator::Communicator;
  // Chooses what sums values: on GPUs NCCL; on CPUs, and where several ranks share a GPU, MPI.
  // Becomes the context's world, which it must outlive. Error when that engine is missing.
  virtual void connect(Context& context) = 0;
  // This rank has failed with this message: the others end, too. Whether it should tell the user:
  // not when another rank has told the same.
  virtual bool fail(const std::string& message) = 0;
};

// Meets the other ranks, before anything is read. Until connect() they can only gather texts. Error
// when they do not all come within the timeout, in seconds.
std::unique_ptr<World> meet(const Launch& launch, double timeout);

}  // namespace crema
