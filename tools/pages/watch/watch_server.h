// The server of `crema watch`: pages about the runs of a folder, over HTTP.
#pragma once

#include <memory>
#include <string>

#include "base/log.h"

namespace crema {

struct WatchOptions {
  std::string folder;
  std::string host = "127.0.0.1";
  int port = 0;       // 0: a free one
  std::string token;  // clients that know it may stop runs
};

class WatchServer {
 public:
  // Takes the port. Error when it cannot be had, or when this build has no cpp-httplib.
  WatchServer(Log& log, const WatchOptions& options);
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  int port() const;
  // Answers until stop(), which may come from another thread.
  void serve();
  void stop();

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace crema
