// NetText: the text of a net whose fields can be changed. Comments and everything else stay as they were
// written.
#pragma once

#include <string>

#include "proto/net.pb.h"

namespace crema {

class NetText {
 public:
  // The text of a net without includes, variables and repeats, as expand() writes it; `path` is for messages.
  // Error for the old forms of nets, which `crema upgrade_net_proto_text` converts.
  NetText(std::string path, std::string text);

  const std::string& text() const { return text_; }
  // The layers have the numbers that follow.
  const NetParameter& net() const { return net_; }

  // Sets a field of a layer, "data_param.batch_size", to a value as it is written in the file: `64`,
  // `"data/train_lmdb"`. A field or block that is missing is added at the end of the block around it.
  void set(int layer, const std::string& field, const std::string& value);
  void remove(int layer);
  // Replaces what stands before the first statement.
  void set_heading(const std::string& comment);

 private:
  void replace(size_t begin, size_t end, const std::string& text);
  void parse();

  std::string path_, text_;
  NetParameter net_;
};

// A text in quotes, as prototxt files have it.
std::string quoted(const std::string& text);

}  // namespace crema
