// Messages of the Language Server Protocol on two file descriptors: JSON behind a header with its length.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace crema {

using Json = nlohmann::ordered_json;

class RpcStream {
 public:
  RpcStream(int in, int out) : in_(in), out_(out) {}

  // The next message; waits for it. None at the end of the input. A message that is no JSON is answered with an
  // error and skipped. Error for a header without a length, or one of more than 64 MiB.
  std::optional<Json> read();
  // Whether more has arrived, or arrives in this time, in milliseconds.
  bool has_more(int milliseconds) const;
  // Error if nobody reads any more.
  void write(const Json& message);

 private:
  bool fill();  // false at the end
  std::optional<std::string> line();

  int in_, out_;
  std::string buffer_;
};

}  // namespace crema
