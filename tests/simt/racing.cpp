// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/racing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "tests/simt/device_array.h"

// Planted races: each must be reported at its lines, and its repaired twin must not be reported.

namespace weft::tests {
namespace {

namespace simt = kernels::simt;
using simt::Race;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct Plant {
  Race race;
  const char* name;
  const char* says;
  const char* kind = "data race: ";
};

void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

constexpr Plant kPlants[] = {
    {Race::no_barrier_before_reading, "no_barrier_before_reading", "of __shared__ tile"},
    {Race::no_barrier_at_the_end_of_the_loop, "no_barrier_at_the_end_of_the_loop", "(missing: __syncthreads)"},
    {Race::no_barrier_after_the_wait, "no_barrier_after_the_wait", "of dynamic shared memory"},
    {Race::copy_waits_for_too_few, "copy_waits_for_too_few", "No thread has waited for the copy"},
    {Race::copy_never_waited_for_here, "copy_never_waited_for_here", "No thread has waited for the copy"},
    {Race::copy_source_overwritten, "copy_source_overwritten", "in a device allocation of 4096 bytes"},
    {Race::blocks_overlap, "blocks_overlap", "(missing: an order between blocks)"},
    {Race::histogram_without_atomics, "histogram_without_atomics", "offset 2048 in a device allocation of 4096 bytes"},
    {Race::shared_histogram_without_atomics, "shared_histogram_without_atomics", "byte 0 of __shared__ tile"},
    {Race::atomic_read_plainly, "atomic_read_plainly", "atomic access"},
    {Race::warp_synchronous, "warp_synchronous", "(missing: __syncwarp)"},
    {Race::shuffle_is_no_barrier, "shuffle_is_no_barrier", "(missing: __syncwarp)"},
    {Race::partial_mask, "partial_mask", "(missing: __syncwarp)"},
    {Race::last_block_without_fence, "last_block_without_fence", "(missing: an order between blocks)"},
    {Race::last_block_without_atomic, "last_block_without_atomic", "(missing: an order between blocks)"},
    {Race::other_threads_not_published, "other_threads_not_published", "in a device allocation of 4096 bytes"},
    {Race::global_one_past_the_end, "global_one_past_the_end",
     "0 bytes past the end of a device allocation of 256 bytes", "out-of-bounds write of 4 bytes at "},
    {Race::dynamic_shared_one_past_the_end, "dynamic_shared_one_past_the_end",
     "byte 256 of 256 bytes of dynamic shared memory", "out-of-bounds write of 4 bytes at "},
    {Race::static_shared_one_past_the_end, "static_shared_one_past_the_end",
     "byte 256 of __shared__ tile, which has 256 bytes", "out-of-bounds write of 4 bytes at "},
    {Race::uninitialised_global, "uninitialised_global", "in a device allocation of 256 bytes",
     "reads 4 bytes that were never written at "},
    {Race::uninitialised_shared, "uninitialised_shared", "byte 252 of __shared__ tile",
     "thread (0,0,0): reads 4 bytes that were never written at "},
};

/// `racing.cu:12`: where the source has the mark `// WHICH: name`, or `// both: name`.
std::string line_of(const std::string& which, const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/simt/racing.cu");
  int number = 1;
  for (std::string line; std::getline(file, line); ++number)
    if (line.ends_with("// " + which + ": " + name) || line.ends_with("// both: " + name))
      return "racing.cu:" + std::to_string(number);
  return "no mark " + name;
}

std::string report(const Plant& plant, bool repaired) {
  const DeviceArray<int> data(std::vector<int>(1024)), fresh(64);
  return error_of([&] { simt::race(kSimt, plant.race, repaired, data.data(), fresh.data()); });
}

class Races : public testing::TestWithParam<Plant> {};

TEST_P(Races, PlantedIsReported) {
  if (!emulator::source::access_checks()) GTEST_SKIP() << "needs a build with WEFT_SIMT_CHECK=ON: tools/test racecheck";
  for_each_schedule([&] {
    const std::string text = report(GetParam(), false);
    EXPECT_THAT(text, AllOf(HasSubstr(line_of("first", GetParam().name)), HasSubstr(line_of("second", GetParam().name)),
                            HasSubstr(GetParam().kind), HasSubstr(GetParam().says)))
        << "schedule " << emulator::source::schedule_seed();
  });
}

TEST_P(Races, RepairedIsNotReported) {
  if (!emulator::source::access_checks()) GTEST_SKIP() << "needs a build with WEFT_SIMT_CHECK=ON: tools/test racecheck";
  for_each_schedule([&] { EXPECT_THAT(report(GetParam(), true), IsEmpty()); });
}

INSTANTIATE_TEST_SUITE_P(Simt, Races, testing::ValuesIn(kPlants),
                         [](const auto& plant) { return std::string(plant.param.name); });

TEST(Races, NamesBothThreads) {
  if (!emulator::source::access_checks()) GTEST_SKIP() << "needs a build with WEFT_SIMT_CHECK=ON: tools/test racecheck";
  EXPECT_THAT(report(kPlants[1], false),
              HasSubstr("block (0,0,0), thread (0,0,0): data race: read of 4 bytes at " +
                        line_of("second", kPlants[1].name) + " against the write at " +
                        line_of("first", kPlants[1].name) + " by block (0,0,0), thread (63,0,0): byte 252 of "));
  EXPECT_THAT(
      report(kPlants[6], false),
      HasSubstr("block (1,0,0), thread (0,0,0): data race: write of 4 bytes at " + line_of("first", kPlants[6].name) +
                " against the write at " + line_of("first", kPlants[6].name) +
                " by block (0,0,0), thread (63,0,0): offset 252 in a device allocation of 4096 bytes"));
}

TEST(Races, TheReadmeNamesTheirLines) {
  std::ifstream file(WEFT_SOURCE_DIR "/emulator/source/README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)), {});
  const auto number = [](const std::string& line) { return line.substr(line.find(':') + 1); };
  for (const Plant& plant : kPlants) {
    const size_t begin = readme.find("| " + std::string(plant.name) + " |");
    ASSERT_NE(begin, readme.npos) << plant.name;
    const std::string row = readme.substr(begin, readme.find('\n', begin) - begin);
    const std::string first = number(line_of("first", plant.name)), second = number(line_of("second", plant.name));
    EXPECT_THAT(row, HasSubstr("| " + (first == second ? first : first + ", " + second) + " |"));
  }
}

/// Threads, warps and blocks that write neighbours in one word do not race.
template <class T>
void expect_neighbours_do_not_race() {
  const int n = 1000;
  std::vector<T> x;
  for (int i = 0; i < n + 1; ++i) x.push_back(T(static_cast<float>(i % 100)));
  const DeviceArray<T> from(x), to(x.size());
  for_each_schedule([&] {
    simt::neighbours(kSimt, to.data() + 1, from.data() + 1, n);
    const std::vector<T> y = to.host();
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(static_cast<float>(y[static_cast<size_t>(i) + 1]), static_cast<float>((i + 1) % 100 * 2));
  });
}

TEST(Races, NeighboursInOneWordDoNotRace) {
  expect_neighbours_do_not_race<float>();
  expect_neighbours_do_not_race<bf16>();
  expect_neighbours_do_not_race<uint8_t>();
}

TEST(Races, TheLastBlockMayReadWhatFencesAndAtomicsPublished) {
  const int n = 10000;
  std::vector<int> x(n);
  std::iota(x.begin(), x.end(), 0);
  const DeviceArray<int> from(x), partial(100), sum(1);
  const DeviceArray<unsigned> count(std::vector<unsigned>(1));
  for (const unsigned blocks : {1u, 2u, 17u, 100u})
    for_each_schedule([&] {
      simt::last_block_sum(kSimt, sum.data(), partial.data(), count.data(), from.data(), n, blocks);
      EXPECT_EQ(sum.host()[0], n * (n - 1) / 2);
      EXPECT_EQ(count.host()[0], 0u);
    });
}

TEST(Races, TheOrderOfAtomicsIsThatInWhichTheyHappen) {  // whatever thread of the machine runs the last block
  const int n = 4096;
  const DeviceArray<int> from(std::vector<int>(n, 1)), partial(64), sum(1);
  const DeviceArray<unsigned> count(std::vector<unsigned>(1));
  const int threads = emulator::source::thread_count();
  emulator::source::set_thread_count(4);
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    EXPECT_THAT(
        error_of([&] { simt::last_block_sum(kSimt, sum.data(), partial.data(), count.data(), from.data(), n, 64); }),
        IsEmpty());
    EXPECT_EQ(sum.host()[0], n);
  }
  emulator::source::set_thread_count(threads);
}

TEST(Races, LaunchesAreOrdered) {
  const DeviceArray<int> data(std::vector<int>(1024));
  for_each_schedule([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_THAT(error_of([&] { simt::race(kSimt, Race::histogram_without_atomics, true, data.data(), nullptr); }),
                  IsEmpty());
  });
  EXPECT_EQ(data.host()[512], 2 * 64 * 3 * 4);
}

}  // namespace
}  // namespace weft::tests
