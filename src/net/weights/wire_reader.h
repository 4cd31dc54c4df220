// Reads the weights out of a .caffemodel of Caffe or of any fork. Forks reuse field numbers for
// different things, so only what all of them share is decoded: names, types and blobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// One learned blob. Values saved in double or half precision come back as float: training never
// needs more, and one type keeps the readers simple.
struct StoredBlob {
  std::vector<int64_t> shape;
  std::vector<float> data;  // as many as the shape says
  bool legacy_4d = false;   // the file gives four axes, whatever the blob has: compare shapes as
                            // Caffe does, leading ones do not count
};

struct StoredLayer {
  std::string name, type;  // today's type name for files of older generations where one exists
  std::vector<StoredBlob> blobs;
};

struct StoredNet {
  std::string name;
  std::vector<StoredLayer> layers;  // in the order of the file; layers without blobs too
};

// Error, with the byte in the file, when it is cut off or damaged; never more memory than a small
// multiple of the file's size.
StoredNet read_caffemodel(const std::string& path);

// The same for bytes in memory; `name` stands for the path in messages.
StoredNet parse_caffemodel(const void* bytes, size_t size, const std::string& name);

}  // namespace crema
