// DataSource: what the net, the solver and the tools ask of a layer that reads data
// (Layer::source). Every function has a default, for a source without that property.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/communicator.h"
#include "device/context.h"

namespace crema {

class DataSource {
 public:
  // Opens a database. Before setup, because in Caffe's log the line of a database precedes those of
  // its layer.
  virtual void open(Context&) {}
  // Called before each forward: true if the tops of this pass have new shapes, which infer then
  // returns.
  virtual bool reshapes(uint64_t /*pass*/) { return false; }

  // --- epochs ---
  // Records per epoch; 0: unknown.
  virtual int64_t records() const { return 0; }
  // The same; a source that must read through itself to know does so.
  virtual int64_t count_records() { return records(); }
  // Called before setup: no batch crosses the end of an epoch (for tests).
  virtual void read_whole_epochs() {}
  // Then: how many records the batch of a pass has; 0: the source has no epochs.
  virtual int64_t records_in(uint64_t /*pass*/) { return 0; }

  // --- several training ranks ---
  // This rank's part of each batch. all 0: it has none, because each rank creates its own tops.
  virtual BatchShare share() const { return {}; }
  // The number of samples, of all ranks, before pass 0, if earlier passes ran with another number
  // of ranks.
  virtual void skip_samples(int64_t /*samples*/) {}
  // The record that a sample of a pass is made of, as error messages name it: `PATH, record 17 (key
  // "cat.jpg")`; "": unknown.
  virtual std::string describe_sample(uint64_t /*pass*/, int64_t /*in_batch*/) { return ""; }
  // A hash of the first record, so that ranks notice when their data differ; 0: none.
  virtual uint64_t hash_of_first() const { return 0; }

  // --- device memory ---
  // Bytes in addition to blobs and parameters: cached records.
  virtual size_t resident_bytes() const { return 0; }
  // Frees them: the records are then read from the host, more slowly.
  virtual void release_resident() {}

  // --- speed ---
  // Total seconds that all forward passes have waited for data.
  virtual double waited() const { return 0; }
  // Which setting would shorten these waits. May take a second.
  virtual std::string waiting_hint() const { return ""; }

 protected:
  ~DataSource() = default;
};

}  // namespace crema
