// The program: finds the verb, sets up the log, and turns every exception into one E line and exit
// code 1.
#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <string_view>

#include "base/error.h"
#include "base/visible.h"
#include "device/communicator.h"
#include "net/graph/layer_error.h"
#include "tools/console/console.h"
#include "tools/console/error_text.h"
#include "tools/console/terminal.h"
#include "tools/docs/built_manual.h"
#include "tools/flags/command_line.h"
#include "tools/layer_libraries.h"
#include "tools/python_start.h"
#include "tools/verb.h"

namespace {

// If a standard stream is closed at the start, the next file opened would get its descriptor, and
// log lines would go into that file.
void open_standard_streams() {
  while (true) {
    const int opened = open("/dev/null", O_RDWR);
    if (opened <= 2 && opened >= 0) continue;
    if (opened >= 0) close(opened);
    return;
  }
}

// The page of a layer's type in the manual, if the terminal shows links. Memory may be too short for
// one: the message is more important.
std::string address_of(const std::string& type) {
  try {
    if (!type.empty() && crema::has_links(STDERR_FILENO)) return crema::address_of_layer(type);
  } catch (const std::exception&) {
    return "";
  }
  return "";
}

int run(int argc, char** argv) {
  const crema::CommandLine line = crema::parse_command_line(argc, argv);
  if (line.version) {
    std::cout << "crema version " CREMA_VERSION "\nbuilt with " CREMA_BUILT_WITH "\n";
    return 0;
  }
  if (line.verb.empty()) {
    std::cout << crema::list_of_verbs();
    return line.help ? 0 : 1;
  }
  if (line.help) {
    std::cout << crema::help_of(line.verb);
    return 0;
  }
  const crema::Verb& verb = *crema::VerbRegistry::find(line.verb);
  const bool quiet = crema::FlagsOf<"quiet">(line.flags).quiet;
  crema::start_logging(argv[0], verb.log, quiet);
  crema::ProgramLog log(verb.log, quiet);
  for (const std::string& note : line.notes) log.info(note);
  for (const std::string& warning : line.warnings) log.warning(warning);
  crema::offer_python(log);
  crema::load_layers(crema::FlagsOf<"layers">(line.flags).layers);
  return verb.run({line.arguments, log, line.given, line.flags, {argv, argv + argc}});
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // Whatever reads the log may exit (`train 2>&1 | head`): the computation continues.
  std::signal(SIGPIPE, SIG_IGN);
  // A file size limit or a quota then makes the write fail, as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  std::string message, layer, type;
  try {
    crema::set_log_defaults();
    return run(argc, argv);
  } catch (const crema::RankLost& lost) {
    if (lost.told()) return 1;
    message = lost.what();
  } catch (const crema::LayerError& error) {
    message = error.what();
    layer = crema::visible(error.name);
    type = error.type;
  } catch (const std::exception& error) {
    message = crema::error_text(error);
  }
  try {
    if (!google::IsGoogleLoggingInitialized())
      crema::start_logging(argv[0], crema::LogStyle::plain, false);
    std::cout << std::flush;  // the message may refer to a table above it
    const crema::LinkedLayer link(layer, address_of(type));
    LOG(ERROR) << crema::visible(message);
  } catch (const std::exception&) {  // no memory even for the message
    constexpr std::string_view text = "crema: out of memory\n";
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
  }
  return 1;
}
