// `crema watch RUNS/ -port 8080`: serves pages about the runs of a folder while they grow.
#include <malloc.h>

#include <csignal>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/hmac.h"
#include "tools/pages/watch/live_pages.h"
#include "tools/pages/watch/watch_server.h"
#include "tools/verb.h"

namespace crema {

namespace {

using WatchFlags = FlagsOf<"port", "host", "token">;

sigset_t signals_that_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// For a browser on this machine.
std::string address(const WatchOptions& options, int port) {
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  const bool v6 = !any && options.host.find(':') != std::string::npos;
  const std::string host = any ? "127.0.0.1" : v6 ? "[" + options.host + "]" : options.host;
  return cat("http://", host, ":", port, "/");
}

int run_watch(const VerbCall& call, const WatchFlags& flags) {
  const std::string& folder = call.arguments[0];
  require(folder_exists(folder), folder, ": there is no such folder; `crema train -run ", folder,
          "/NAME` makes one");
  require(flags.port >= 0 && flags.port <= 65535, "-port ", flags.port,
          ": expected 0, a free one, to 65535");
  const WatchOptions options{.folder = folder,
                             .host = flags.host,
                             .port = flags.port,
                             .token = flags.token.empty() ? random_token() : flags.token};
  mallopt(M_ARENA_MAX, 1);  // what one thread's page took is there for the next thread's
  WatchServer server(call.log, options);
  // Blocked before there are other threads, so that only this one receives them.
  const sigset_t signals = signals_that_end();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const pthread_t main_thread = pthread_self();
  std::thread serving([&] {
    server.serve();
    pthread_kill(main_thread, SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  });
  // Everybody on this machine may be able to read the log's files, and list commands.
  const std::string here = address(options, server.port());
  call.log.info(cat("Watching ", folder, " at ", here, "; press Ctrl-C to stop."));
  if (call.given.count("token"))
    call.log.warning(
        "-token: other users of this machine can read the commands that run here. Set "
        "CREMA_FLAGS='-token WORD' instead, or leave it out for a random one.");
  std::cout << "To stop runs from the page, open " << here << "?token=" << url_text(options.token)
            << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  serving.join();
  return 0;
}

REGISTER_VERB(watch, {.summary = "serves live pages of the runs in a folder",
                      .usage = "RUNS/ [-port 8080] [-host 127.0.0.1] [-token WORD]",
                      .example = "crema watch runs/ -port 8080",
                      .min_arguments = 1,
                      .max_arguments = 1,
                      .run = run_watch});

}  // namespace

}  // namespace crema
