// Reads the weights of a .caffemodel written by Caffe or any fork. Forks reuse field numbers for
// different things, so only what all of them share is decoded: names, types and blobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

class WireCursor;

// One learned blob. Values saved in double or half precision are returned as float: training never
// needs more, and a single type keeps the readers simple.
struct StoredBlob {
  std::vector<int64_t> shape;
  std::vector<float> data;   // as many as the shape says
  bool legacy_axes = false;  // the file gives four axes (C3D: five), whatever the blob has: compare
                             // shapes as Caffe does, ignoring leading ones
};

struct StoredLayer {
  std::string name, type;  // today's type name for files of older generations, where one exists
  std::vector<StoredBlob> blobs;
};

struct StoredNet {
  std::string name;
  std::vector<StoredLayer> layers;  // in the order of the file; layers without blobs too
};

// Error, with the byte offset, when the file is cut off or damaged. Never uses more memory than a
// small multiple of the file's size.
StoredNet read_caffemodel(const std::string& path);

// The same for bytes in memory; `name` replaces the path in messages.
StoredNet parse_caffemodel(const void* bytes, size_t size, const std::string& name);

// One blob. Error when its values are not as many as its shape says.
StoredBlob read_stored_blob(WireCursor blob);
// Whether it is one of C3D's first files: the length of clips is the third field there, and all
// later ones have numbers one higher.
bool has_clip_numbers(WireCursor blob);

}  // namespace crema
