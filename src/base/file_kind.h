// Recognizes a file by its first bytes, for messages about a file given in place of something else.
// data/databases/given_file.h looks into databases and also recognizes other folders.
#pragma once

#include <string>

namespace crema {

// What it is and which command accepts it: {"a PyTorch file (.pth)", "crema convert_weights -from
// FILE writes a .caffemodel of it"}. Both are empty if there is no such file.
struct FileKind {
  std::string what, use;
};

// Kinds that callers ask for.
constexpr const char *kWeightsKind = "weights (.caffemodel)", *kHdf5Kind = "an HDF5 file",
                     *kStateKind = "a solver state (.solverstate)",
                     *kMeanKind = "an array of Caffe (.binaryproto), such as a mean",
                     *kNetKind = "a net", *kSolverKind = "a solver",
                     *kUnknownKind = "a file of unknown format", *kTextKind = "a text",
                     *kTableKind = "a table", *kEmptyKind = "an empty file";

FileKind file_kind(const std::string& path);
// Whether lines can be read from it: any text except those of other known kinds.
bool may_be_list(const FileKind& kind);

// The end of a message: "; it is a PyTorch file (.pth): crema convert_weights ...". "" for nothing, and
// for an unknown format.
std::string what_it_is(const FileKind& kind);

}  // namespace crema
