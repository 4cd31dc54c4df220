// The HTTP server of `crema serve`: the KServe v2 inference protocol, pictures, metrics and a page.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/console/program_log.h"
#include "tools/serve/served_model.h"

namespace crema {

struct ServeOptions {
  std::vector<ServedModelOptions> models;
  std::string host = "127.0.0.1";
  int port = 8080;
  std::chrono::microseconds delay{2000};  // how long a request waits for others
  size_t max_body = size_t{16} << 20;     // bytes
};

class ServeServer {
 public:
  // Opens the models and listens. Error when either fails.
  ServeServer(const ServeOptions& options, ProgramLog& log);
  ~ServeServer();
  ServeServer(const ServeServer&) = delete;
  ServeServer& operator=(const ServeServer&) = delete;

  int port() const;
  // Answers until finish() or stop(), from any thread.
  void serve();
  // Answers the requests that have come, refuses others, and ends.
  void finish();
  // Ends now.
  void stop();

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace crema
