#include "net/weights/wire_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/random_access_file.h"
#include "net/prototxt/upgrade_layers.h"
#include "net/prototxt/upgrade_strip.h"
#include "net/weights/wire_reader_cursor.h"
#include "tensor/half.h"
#include "tensor/shape_limits.h"

namespace crema {

namespace {

using Tag = WireCursor::Tag;

// Recognizes other kinds of files given as weights by their first bytes.
void check_kind(std::string_view content, const std::string& file) {
  require(!content.empty(), file, ": is empty");
  require(!ends_with(file, ".solverstate"), file,
          ": is a solver state, not the weights: give the .caffemodel next to it, or resume "
          "training with -snapshot");
  require(!starts_with(content, "\x89HDF"), file, ": is an HDF5 file: its name must end in .h5");
  require(!starts_with(content, "version https://git-lfs"), file,
          ": is a Git LFS pointer, not the weights: run git lfs pull");
  require(!starts_with(content, "<"), file,
          ": is a web page, not the weights: the download "
          "went wrong");
  require(!starts_with(content, "name:") && !starts_with(content, "layer"), file,
          ": is a net description in text, not the weights");
  const FileKind kind = file_kind(file);
  const bool weights = kind.what.empty() || kind.what == kWeightsKind ||
                       kind.what == kUnknownKind || kind.what == kTextKind;
  require(weights, file, ": has no weights", what_it_is(kind));
}

// A fork's raw bytes: type 0 is double, 1 float, 2 half.
std::vector<float> raw_values(const WireCursor& raw, uint64_t type) {
  const std::string_view bytes = raw.rest();
  const size_t size = type == 0 ? 8 : type == 1 ? 4 : 2;
  if (type > 2 || bytes.size() % size != 0) raw.corrupt("raw values of an unknown kind");
  std::vector<float> out(bytes.size() / size);
  for (size_t i = 0; i < out.size(); ++i) {
    const char* from = bytes.data() + i * size;
    if (type == 0) {
      double value;
      std::memcpy(&value, from, size);
      out[i] = static_cast<float>(value);
    } else if (type == 1) {
      std::memcpy(&out[i], from, size);
    } else {
      Half value;
      std::memcpy(&value.bits, from, size);
      out[i] = value;
    }
  }
  return out;
}

// The product of the shape must be the number of values.
void check_count(const StoredBlob& blob, const WireCursor& end) {
  if (blob.shape.size() > kMaxBlobAxes)
    end.corrupt(cat("a blob has ", blob.shape.size(), " axes, but may have ", kMaxBlobAxes));
  const Shape shape(blob.shape);
  if (!at_most(shape, kMaxValues)) end.corrupt("a blob has an impossible shape");
  if (shape.count() != static_cast<int64_t>(blob.data.size()))
    end.corrupt(cat("a blob of shape ", shape.brief(), " should hold ", shape.count(),
                    " values, it holds ", blob.data.size()));
}

// Half precision as a list of integers: the first 16-bit branch of NVIDIA's fork.
std::vector<float> half_values(WireCursor halves) {
  std::vector<float> values;
  while (!halves.done()) {
    Half value;
    value.bits = static_cast<uint16_t>(halves.varint() & 0xffff);
    values.push_back(value);
  }
  return values;
}

}  // namespace

bool has_clip_numbers(WireCursor blob) {
  while (!blob.done()) {
    const Tag tag = blob.tag();
    if (tag.field == 5 && tag.kind == WireCursor::kVarint) return true;
    blob.skip(tag);
  }
  return false;
}

namespace {

// C3D: num, channels, length, height, width, data.
StoredBlob read_clip_blob(WireCursor in) {
  StoredBlob blob;
  blob.legacy_axes = true;
  blob.shape.assign(5, 0);
  while (!in.done()) {
    const Tag tag = in.tag();
    if (tag.field >= 1 && tag.field <= 5 && tag.kind == WireCursor::kVarint) {
      blob.shape[tag.field - 1] = static_cast<int32_t>(in.varint());
    } else if (tag.field == 6) {
      in.floats(tag, &blob.data);
    } else {
      in.skip(tag);  // gradients
    }
  }
  check_count(blob, in);
  return blob;
}

}  // namespace

StoredBlob read_stored_blob(WireCursor in) {
  if (has_clip_numbers(in)) return read_clip_blob(in);
  StoredBlob blob;
  std::vector<float> doubles, halves;
  int64_t legacy[4] = {0, 0, 0, 0};
  bool has_shape = false;
  uint64_t raw_type = 1, unknown = 0;
  std::optional<WireCursor> raw;
  while (!in.done()) {
    const Tag tag = in.tag();
    if (tag.field >= 1 && tag.field <= 4 && tag.kind == WireCursor::kVarint) {
      legacy[tag.field - 1] = static_cast<int32_t>(in.varint());
      blob.legacy_axes = true;
    } else if (tag.field == 5) {
      in.floats(tag, &blob.data);
    } else if (tag.field == 7 && tag.kind == WireCursor::kBytes) {
      has_shape = true;
      for (WireCursor shape = in.part(); !shape.done();) {
        const Tag dim = shape.tag();
        if (dim.field == 1) {
          shape.whole_numbers(dim, &blob.shape);
        } else {
          shape.skip(dim);
        }
      }
    } else if (tag.field == 8) {
      in.doubles(tag, &doubles);
    } else if (tag.field == 10 && tag.kind == WireCursor::kVarint) {
      raw_type = in.varint();
    } else if (tag.field == 10 && tag.kind == WireCursor::kBytes) {
      halves = half_values(in.part());
    } else if (tag.field == 12 && tag.kind == WireCursor::kBytes) {
      raw = in.part();
    } else {
      const bool gradients = tag.field == 6 || tag.field == 9 || tag.field == 11 || tag.field == 13;
      if (tag.kind == WireCursor::kBytes && !gradients) unknown = tag.field;
      in.skip(tag);
    }
  }
  if (!blob.data.empty() && !doubles.empty())
    in.corrupt(cat("a blob holds ", blob.data.size(), " floats and ", doubles.size(),
                   " doubles, but a blob has only one kind"));
  if (blob.data.empty()) blob.data = std::move(doubles);
  if (blob.data.empty()) blob.data = std::move(halves);
  if (blob.data.empty() && raw) blob.data = raw_values(*raw, raw_type);
  require(!blob.data.empty() || unknown == 0, in.file(), ": the values of a blob are in field ",
          unknown, ", as only the program that wrote the file has them: let it write floats");
  if (has_shape) {
    blob.legacy_axes = false;
  } else if (blob.legacy_axes) {
    blob.shape.assign(legacy, legacy + 4);
  } else {
    blob.shape = {static_cast<int64_t>(blob.data.size())};
  }
  check_count(blob, in);
  return blob;
}

namespace {

// Runs body; an Error is prefixed with the layer's name.
StoredBlob blob_of(const StoredLayer& layer, const WireCursor& part, const std::string& file) {
  try {
    return read_stored_blob(part);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (layer.name.empty()) throw;
    fail(file, ": layer \"", layer.name, "\": blob ", layer.blobs.size(), what.substr(file.size()));
  }
}

// Field numbers of one generation of layers. The type is a string in V2 and V0, a number in V1.
struct LayerFields {
  uint32_t name, type, blobs;
};
constexpr LayerFields kV2 = {1, 2, 7}, kV1 = {4, 5, 6}, kV0 = {1, 2, 50};
constexpr uint32_t kV0InV1 = 1;

std::string v1_type(uint64_t number) {
  const bool known =
      number < kFirstForkNumber && V1LayerParameter::LayerType_IsValid(static_cast<int>(number));
  return known ? layer_type(static_cast<V1LayerParameter::LayerType>(number))
               : cat("V1 type ", number);
}

void read_layer(WireCursor in, const LayerFields& fields, const std::string& file,
                StoredLayer* layer) {
  const bool v1 = fields.name == kV1.name;
  while (!in.done()) {
    const Tag tag = in.tag();
    const bool bytes = tag.kind == WireCursor::kBytes;
    if (tag.field == fields.name && bytes) {
      layer->name = in.part().rest();
    } else if (tag.field == fields.type && bytes) {
      layer->type = in.part().rest();
    } else if (tag.field == fields.type && tag.kind == WireCursor::kVarint) {
      layer->type = v1_type(in.varint());
    } else if (tag.field == fields.blobs && bytes) {
      layer->blobs.push_back(blob_of(*layer, in.part(), file));
    } else if (v1 && tag.field == kV0InV1 && bytes) {
      read_layer(in.part(), kV0, file, layer);
      const std::string today = layer_type(layer->type);
      if (!today.empty()) layer->type = today;
    } else {
      in.skip(tag);
    }
  }
}

// Whether C3D's first version wrote the file.
bool is_of_clips(const StoredNet& net) {
  return std::any_of(net.layers.begin(), net.layers.end(), [](const StoredLayer& layer) {
    return !layer.blobs.empty() && layer.blobs[0].legacy_axes && layer.blobs[0].shape.size() == 5;
  });
}

// That version has different types at two numbers.
void name_clip_types(StoredNet* net) {
  if (!is_of_clips(*net)) return;
  for (StoredLayer& layer : net->layers) {
    if (layer.type == layer_type(V1LayerParameter::ARGMAX)) layer.type = "Convolution";
    if (layer.type == layer_type(V1LayerParameter::THRESHOLD)) layer.type = "Pooling";
  }
}

// The fields of a net, of which `bytes` are those from `offset` on.
void read_fields(const void* bytes, size_t size, uint64_t offset, const std::string& name,
                 StoredNet* net) {
  constexpr uint32_t kName = 1, kLayersV1 = 2, kLayersV2 = 100;
  for (WireCursor in(name, ".caffemodel", bytes, size, offset); !in.done();) {
    const Tag tag = in.tag();
    if (tag.kind != WireCursor::kBytes) {
      in.skip(tag);
    } else if (tag.field == kName) {
      net->name = in.part().rest();
    } else if (tag.field == kLayersV2 || tag.field == kLayersV1) {
      read_layer(in.part(), tag.field == kLayersV2 ? kV2 : kV1, name, &net->layers.emplace_back());
    } else {
      in.skip(tag);
    }
  }
}

// The end of the field at `offset`, if it is a whole part; otherwise that of the file.
uint64_t end_of_field(const RandomAccessFile& file, uint64_t offset) {
  constexpr size_t kLongest = 20;  // a tag and a length
  char header[kLongest];
  const size_t size = file.read(offset, header, kLongest);
  WireCursor in(file.path(), ".caffemodel", header, size);
  try {
    if (in.tag().kind != WireCursor::kBytes) return file.size();
    const uint64_t length = in.varint(), begin = offset + size - in.left();
    return length <= file.size() - begin ? begin + length : file.size();
  } catch (const Error&) {
    return file.size();  // read_fields() reports what is wrong
  }
}

}  // namespace

StoredNet parse_caffemodel(const void* bytes, size_t size, const std::string& name) {
  check_kind({static_cast<const char*>(bytes), size}, name);
  StoredNet net;
  read_fields(bytes, size, 0, name, &net);
  name_clip_types(&net);
  return net;
}

StoredNet read_caffemodel(const std::string& path) {
  const RandomAccessFile file(path);
  StoredNet net;
  std::vector<char> bytes(std::min<uint64_t>(file.size(), 64));
  file.read(0, bytes.data(), bytes.size());
  check_kind({bytes.data(), bytes.size()}, path);
  // Field by field, because a layer's bytes are not needed once it is read.
  for (uint64_t offset = 0; offset < file.size(); offset += bytes.size()) {
    bytes.resize(end_of_field(file, offset) - offset);
    require(file.read(offset, bytes.data(), bytes.size()) == bytes.size(), path,
            ": was cut short while it was read");
    read_fields(bytes.data(), bytes.size(), offset, path, &net);
  }
  name_clip_types(&net);
  return net;
}

}  // namespace crema
