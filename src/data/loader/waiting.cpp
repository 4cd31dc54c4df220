#include "data/loader/waiting.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace crema {
namespace {

double share(const WaitingFacts& facts, double seconds) {
  return facts.seconds > 0 ? seconds / facts.seconds : 0;
}

bool takes_most(const WaitingFacts& facts, double SampleTimes::*part) {
  return share(facts, facts.times.*part) >= 0.4;
}

std::string percent(const WaitingFacts& facts, double SampleTimes::*part) {
  return cat(std::lround(100 * share(facts, facts.times.*part)), " % of a sample's time");
}

// Decoded pixels per pixel that is read.
double excess(const WaitingFacts& facts) {
  const int64_t used = facts.height * facts.width, stored = facts.times.height * facts.times.width;
  return used > 0 ? static_cast<double>(stored) / static_cast<double>(used) : 0;
}

std::string stored_size(const WaitingFacts& facts) {
  return cat(facts.times.width, " x ", facts.times.height, " pixels");
}

size_t decoded_bytes(const WaitingFacts& facts) {
  const bool kept_resized = facts.resizes && facts.files;
  const int64_t pixels =
      kept_resized ? facts.height * facts.width : facts.times.height * facts.times.width;
  return static_cast<size_t>(facts.records * facts.channels * pixels);
}

struct Row {
  bool (*holds)(const WaitingFacts&);
  std::string (*text)(const WaitingFacts&);
};

// The first that applies.
const Row kRows[] = {
    {[](const WaitingFacts& f) { return takes_most(f, &SampleTimes::read) && f.files; },
     [](const WaitingFacts& f) {
       return cat(
           "reading the files takes ", percent(f, &SampleTimes::read),
           ". Put them on a faster disk or into memory (/dev/shm), or make a database of them "
           "with convert_imageset");
     }},
    {[](const WaitingFacts& f) { return takes_most(f, &SampleTimes::read); },
     [](const WaitingFacts& f) {
       return cat("reading the records takes ", percent(f, &SampleTimes::read),
                  ". Put the database on a faster disk or into memory (/dev/shm)");
     }},
    {[](const WaitingFacts& f) { return f.threads < f.cores; },
     [](const WaitingFacts& f) {
       return cat("its samples are made on ", f.threads, " of ", f.cores,
                  " cores. Leave out `threads` or give more");
     }},
    {[](const WaitingFacts& f) {
       return takes_most(f, &SampleTimes::change) && !f.dearest_change.empty();
     },
     [](const WaitingFacts& f) {
       return cat("the changes of augment take ", percent(f, &SampleTimes::change), ", most of it ",
                  f.dearest_change,
                  ". Leave it out, make its probability smaller, or store smaller images");
     }},
    {[](const WaitingFacts& f) { return takes_most(f, &SampleTimes::change); },
     [](const WaitingFacts& f) {
       return cat("resizing and changing images as transform_param asks takes ",
                  percent(f, &SampleTimes::change),
                  ". Store them in the size that is read: convert_imageset -resize_height ",
                  f.height, " -resize_width ", f.width);
     }},
    {[](const WaitingFacts& f) {
       return f.decodes && f.has_cache && !f.cached && decoded_bytes(f) <= f.free_memory / 2;
     },
     [](const WaitingFacts& f) {
       return cat("decoding takes ", percent(f, &SampleTimes::decode),
                  ". `cache: RAM` keeps the decoded images, ", size_text(decoded_bytes(f)),
                  " of the ", size_text(f.free_memory), " that are free");
     }},
    {[](const WaitingFacts& f) { return f.decodes && f.resizes && !f.scaled && excess(f) >= 4; },
     [](const WaitingFacts& f) {
       return cat("decoding images of ", stored_size(f), " takes ",
                  percent(f, &SampleTimes::decode),
                  ". transform_param { scaled_decoding: true } decodes them at a part of their "
                  "size; or store them smaller with convert_imageset -resize_height ",
                  f.height, " -resize_width ", f.width);
     }},
    {[](const WaitingFacts& f) { return f.decodes && excess(f) >= 2; },
     [](const WaitingFacts& f) {
       return cat("decoding images of ", stored_size(f), " takes ",
                  percent(f, &SampleTimes::decode), ", and the net reads ", f.width, " x ",
                  f.height,
                  ". Store them a little larger than that with convert_imageset -resize_height and "
                  "-resize_width");
     }},
    {[](const WaitingFacts& f) { return f.decodes && !f.cached; },
     [](const WaitingFacts& f) {
       return cat("decoding takes ", percent(f, &SampleTimes::decode),
                  ". Store raw records (convert_imageset without -encoded), ",
                  size_text(decoded_bytes(f)),
                  f.has_cache ? ", or keep decoded images in a file with `cache: DISK`" : "");
     }},
    {[](const WaitingFacts&) { return true; },
     [](const WaitingFacts& f) {
       return cat("all ", f.threads, " cores make its samples, each in ",
                  static_cast<float>(std::round(1e5 * f.seconds) / 100),
                  " ms. More cores would help, or smaller images");
     }},
};

}  // namespace

std::string waiting_hint(const WaitingFacts& facts) {
  const Row* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                      [&](const Row& r) { return r.holds(facts); });
  return row->text(facts);
}

}  // namespace crema
