// The hint for a run that waits for its data: what helps in each case.
#include "data/loader/waiting.h"

#include <gtest/gtest.h>

#include <thread>

#include "data/loader/loader.h"
#include "data/transforms/changes.h"
#include "fixtures.h"

namespace crema::tests {
namespace waiting_test {

constexpr size_t kGiB = size_t{1} << 30;

// 10,000 JPEGs of 500 x 375 in a database, of which the net reads 224 x 224: 4 cores, 1 ms each.
WaitingFacts jpegs() {
  WaitingFacts facts;
  facts.times = {0.00002, 0.0008, 0, 375, 500};
  facts.seconds = 0.001;
  facts.threads = facts.cores = 4;
  facts.records = 10000;
  facts.channels = 3;
  facts.height = facts.width = 224;
  facts.decodes = facts.has_cache = true;
  facts.free_memory = 2 * kGiB;
  return facts;
}

struct Row {
  const char* name;
  void (*change)(WaitingFacts&);
  const char* hint;  // a part of it
};

const Row kRows[] = {
    {"AFewOfTheCores", [](WaitingFacts& f) { f.threads = 1; },
     "its samples are made on 1 of 4 cores. Leave out `threads` or give more"},
    {"ReadingRecords", [](WaitingFacts& f) { f.times.read = 0.0005; },
     "reading the records takes 50 % of a sample's time. Put the database on a faster disk"},
    {"ReadingRecordsOnOneThread",
     [](WaitingFacts& f) {
       f.times.read = 0.0005;
       f.threads = 1;
     },
     "a faster disk"},
    {"ReadingFiles",
     [](WaitingFacts& f) {
       f.times.read = 0.0005;
       f.files = true;
     },
     "reading the files takes 50 % of a sample's time. Put them on a faster disk or into memory "
     "(/dev/shm), or make a database"},
    {"AChange",
     [](WaitingFacts& f) {
       f.times.change = 0.0006;
       f.times.decode = 0.0003;
       f.dearest_change = "perspective";
     },
     "the changes of augment take 60 % of a sample's time, most of it perspective. Leave it out"},
    {"ResizingInTheNet",
     [](WaitingFacts& f) {
       f.times.change = 0.0006;
       f.times.decode = 0.0003;
     },
     "convert_imageset -resize_height 224 -resize_width 224"},
    {"FitsIntoMemory", [](WaitingFacts& f) { f.free_memory = 32 * kGiB; },
     "decoding takes 80 % of a sample's time. `cache: RAM` keeps the decoded images, 5.2 GiB of "
     "the 32.0 GiB that are free"},
    {"FitsIntoMemoryResized",
     [](WaitingFacts& f) {
       f.files = f.resizes = true;
       f.free_memory = 4 * kGiB;
     },
     "`cache: RAM` keeps the decoded images, 1.4 GiB of the 4.0 GiB"},
    {"IsCachedAlready",
     [](WaitingFacts& f) {
       f.cached = true;
       f.free_memory = 32 * kGiB;
     },
     "Store them a little larger than that"},
    {"ResizedMuch",
     [](WaitingFacts& f) {
       f.times.height = 3000;
       f.times.width = 4000;
       f.resizes = true;
     },
     "decoding images of 4000 x 3000 pixels takes 80 % of a sample's time. transform_param { "
     "scaled_decoding: true }"},
    {"ScaledAlready",
     [](WaitingFacts& f) {
       f.times.height = 3000;
       f.times.width = 4000;
       f.resizes = f.scaled = true;
     },
     "decoding images of 4000 x 3000 pixels takes 80 % of a sample's time, and the net reads 224 x "
     "224. Store them a little larger than that with convert_imageset -resize_height"},
    {"LargerThanTheCrop", [](WaitingFacts&) {}, "Store them a little larger than that"},
    {"OfTheRightSize", [](WaitingFacts& f) { f.times.height = f.times.width = 256; },
     "Store raw records (convert_imageset without -encoded), 1.8 GiB, or keep decoded images in a "
     "file with `cache: DISK`"},
    {"RawOnes",
     [](WaitingFacts& f) {
       f.decodes = false;
       f.times.decode = 0;
     },
     "all 4 cores make its samples, each in 1 ms. More cores would help, or smaller images"},
};

TEST(WaitingHint, SaysWhatHelpsMost) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    WaitingFacts facts = jpegs();
    row.change(facts);
    expect_part(waiting_hint(facts), row.hint);
  }
}

// Each sample takes its time, to the parts of load() and to write().
class Slow : public Dataset {
 public:
  int64_t size() const override { return 10; }
  std::string describe(const SampleIndex&) const override { return "a sample"; }
  std::string how_to_equalize() const override { return "do nothing"; }
  void load(const SampleIndex&, Sample& sample) const override {
    sample.shape = {3, 4, 5};
    Laps laps(sample.times);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    laps.end(&SampleTimes::read);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    laps.end(&SampleTimes::decode);
    laps.see_image(8, 9);
  }
  void write(const SampleIndex&, Sample& sample, float*) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    sample.labels = {0};
  }
  void add_facts(WaitingFacts& facts) const override { facts.decodes = true; }
};

TEST(Loader, SurveysItsSamples) {
  Loader loader(std::make_shared<Slow>(), LoaderOptions{});
  loader.batch(0);
  const WaitingFacts facts = loader.survey();
  EXPECT_GE(facts.times.read, 0.001);
  EXPECT_GE(facts.times.decode, 0.003);
  EXPECT_EQ(facts.times.change, 0);
  EXPECT_GE(facts.seconds, facts.times.read + facts.times.decode + 0.002);
  EXPECT_EQ(facts.times.height, 8);
  EXPECT_EQ(facts.times.width, 9);
  EXPECT_EQ(facts.records, 10);
  EXPECT_EQ(facts.channels, 3);
  EXPECT_EQ(facts.width, 5);
  EXPECT_EQ(facts.threads, 1);
  EXPECT_GT(facts.free_memory, 0u);
  EXPECT_TRUE(facts.decodes);
}

TEST(Changes, KnowWhichOfThemIsDearest) {
  AugmentParameter augment;
  EXPECT_EQ(Changes(augment, {true}).dearest(3, 100, 100), "");
  augment.mutable_flip();
  augment.mutable_gray()->set_probability(1);
  augment.mutable_perspective()->set_probability(1);
  EXPECT_EQ(Changes(augment, {true}).dearest(3, 200, 200), "perspective");
  EXPECT_EQ(Changes(augment, {false}).dearest(3, 200, 200), "") << "in a test nothing is changed";
}

}  // namespace waiting_test
}  // namespace crema::tests
