// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/time_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "emulator/machine/gpu.h"
#include "emulator/machine/time_table.h"

namespace emulator::time_model {
namespace {

constexpr double kAlone = 64;  // the norm's exponent: nearly the largest alone

const Chip& a6000() { return *find_chip("a6000"); }
const Chip& h100() { return *find_chip("h100"); }

/// A block on each SM of an A6000, with warps for all schedulers.
Work one_wave() {
  Work w;
  w.blocks = w.counted_blocks = 84;
  w.warps_per_block = 8;
  return w;
}

double cycles(const Chip& chip, const Prediction& p) { return (p.seconds - chip.launch_us * 1e-6) * p.ghz * 1e9; }

TEST(TimeModel, AnFmaTakesAQuarterOfACycleOfAnSmWith128Lanes) {
  Work w = one_wave();
  w.fp32 = 84 * 4e6;  // warp instructions: 4e6 a SM, 4 warps' worth of lanes a cycle
  const Prediction p = predict(a6000(), w, {.overlap = kAlone});
  EXPECT_NEAR(cycles(a6000(), p), 1e6, 1e3);
  EXPECT_EQ(p.limit, Limit::fp32);
}

TEST(TimeModel, TheOverlapAddsWhatAWaveNeedsOfTwoLimits) {
  Work w = one_wave();
  w.fp32 = 84 * 4e6;
  w.wavefronts = 84 * 1e6;
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = 1})), 2e6, 1e3);
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = 2})), std::sqrt(2.0) * 1e6, 1e3);
}

TEST(TimeModel, APartOfTheBlocksStandsForAll) {
  Work w = one_wave();
  w.blocks = 840;
  w.fp32 = 84 * 4e6;
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = kAlone})), 1e7, 1e4);
}

TEST(TimeModel, ABlockMoreThanAWaveTakesAnotherWave) {
  Work w = one_wave();
  w.fp32 = 84 * 4e6;
  w.blocks = 85;
  const Prediction p = predict(a6000(), w, {.overlap = kAlone});
  EXPECT_NEAR(cycles(a6000(), p), 2e6, 2e3);
  EXPECT_NEAR(p.cycles[static_cast<size_t>(Limit::tail)], 1e6 * 83 / 84, 2e3);
}

TEST(TimeModel, ResidentBlocksShareAnSmAndHideEachOthersLatency) {
  Work w = one_wave();
  w.blocks = w.counted_blocks = 168;
  w.path = 168 * 1e6;
  w.fp32 = 168 * 4 * 5e5;
  w.resident_blocks = 2;
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = kAlone})), 1e6, 2e4) << "both together";
  w.resident_blocks = 1;
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = kAlone})), 2e6, 4e4) << "one after the other";
}

TEST(TimeModel, OneWarpUsesOneSchedulerOfFour) {
  Work w = one_wave();
  w.warps_per_block = 1;
  w.issued = 84 * 1e6;
  const Prediction p = predict(a6000(), w, {.overlap = kAlone});
  EXPECT_NEAR(cycles(a6000(), p), 1e6, 1e3);
  EXPECT_EQ(p.limit, Limit::issue);
}

TEST(TimeModel, MemoryGivesMoreOfItsPinsToReadsThanToWrites) {
  const auto pins = [](double read, double written) {
    Work w = one_wave();
    w.dram_bytes = w.l2_bytes = (read + written) * 768e9 * 1e-3;
    w.dram_written = written * 768e9 * 1e-3;
    const Prediction p = predict(a6000(), w, {.overlap = kAlone});
    EXPECT_EQ(p.limit, Limit::dram);
    return (read + written) * 1e-3 / (p.seconds - a6000().launch_us * 1e-6);
  };
  EXPECT_NEAR(pins(1, 0), 0.98, 1e-3);
  EXPECT_NEAR(pins(1, 1), 0.87, 1e-3);   // a copy
  EXPECT_NEAR(pins(2, 1), 0.904, 1e-3);  // a sum of two tensors: 0.90 on an H200
}

TEST(TimeModel, L2AndMemoryKeepTheirClocks) {
  Work w = one_wave();
  for (double Work::*const bytes : {&Work::l2_bytes, &Work::dram_bytes}) {
    w.*bytes = 1e10;
    EXPECT_NEAR(predict(a6000(), w, {.overlap = kAlone, .ghz = 1.5}).seconds,
                predict(a6000(), w, {.overlap = kAlone}).seconds, 1e-6);
  }
}

TEST(TimeModel, AtomicsOfOneSliceFollowEachOtherOverAllBlocks) {
  Work w = one_wave();
  w.atomics = 1e6;
  const Prediction p = predict(a6000(), w, {.overlap = kAlone});
  EXPECT_NEAR(cycles(a6000(), p), 1e6, 1e3);
  EXPECT_EQ(p.limit, Limit::atomics);
  w.blocks = 840;
  EXPECT_NEAR(cycles(a6000(), predict(a6000(), w, {.overlap = kAlone})), 1e7, 1e4);
}

TEST(TimeModel, WgmmaHasThePeakOfTheDataSheetAndMmaTwoThirdsOfIt) {
  Work w;
  w.blocks = w.counted_blocks = 132;
  w.warps_per_block = 12;
  w.tensor_wgmma = 989.4e12 * 1e-3;  // at 1.83 GHz
  EXPECT_NEAR(cycles(h100(), predict(h100(), w, {.overlap = kAlone})), 1.83e6, 5e3);
  w.tensor_mma = std::exchange(w.tensor_wgmma, 0);
  EXPECT_NEAR(cycles(h100(), predict(h100(), w, {.overlap = kAlone})), 1.83e6 / 0.63, 1e4);
}

TEST(TimeModel, AMeasuredClockTakesThePlaceOfTheBoostClock) {
  Work w = one_wave();
  w.fp32 = 84 * 4e6;
  w.wavefronts = 84 * 1e5;
  EXPECT_EQ(predict(a6000(), w).ghz, a6000().ghz) << "busy units do not lower it";
  const Prediction p = predict(a6000(), w, {.overlap = kAlone, .ghz = 1.25});
  EXPECT_EQ(p.ghz, 1.25);
  EXPECT_NEAR(p.seconds - a6000().launch_us * 1e-6, 1e6 / 1.25e9, 1e-6);
}

TEST(TimeModel, NothingTakesLessThanALaunch) {
  const Prediction p = predict(a6000(), Work{});
  EXPECT_DOUBLE_EQ(p.seconds, a6000().launch_us * 1e-6);
  EXPECT_EQ(p.limit, Limit::launch);
}

TEST(TimeModel, ItsChipsAreThoseOfTheEmulator) {
  for (const char* const key : {"h100", "h200", "gh200", "a100", "a6000"}) {
    ASSERT_NE(find_chip(key), nullptr) << key;
    ASSERT_NE(find_gpu(key), nullptr) << key;
    EXPECT_EQ(find_chip(key)->processors, find_gpu(key)->processors) << key;
    EXPECT_EQ(find_chip(key)->l2_capacity, static_cast<double>(find_gpu(key)->l2_bytes)) << key;
  }
  EXPECT_EQ(find_chip("l4"), nullptr);
}

TEST(TimeTable, ALineIsReadAsItWasWritten) {
  TableLine line{.kernel = "_Z1fv", .gpu = "a100", .work = one_wave()};
  line.work.path = 12345;
  line.work.dram_written = 99;
  line.work.atomics = 678;
  line.work.tensor_f64 = 7e15;
  TableLine read;
  ASSERT_TRUE(from_text(to_text(line, predict(a6000(), line.work)), read));
  EXPECT_EQ(read.kernel, "_Z1fv");
  EXPECT_EQ(read.gpu, "a100");
  EXPECT_EQ(read.work.blocks, 84);
  EXPECT_EQ(read.work.path, 12345);
  EXPECT_EQ(read.work.dram_written, 99);
  EXPECT_EQ(read.work.atomics, 678);
  EXPECT_EQ(read.work.tensor_f64, 7e15);
}

TEST(TimeTable, AnotherTextIsRefused) {
  TableLine read;
  EXPECT_FALSE(from_text("", read));
  EXPECT_FALSE(from_text("kernel=f\tgpu=h100", read)) << "no counts";
  const std::string whole = to_text({.kernel = "f", .gpu = "h100", .work = one_wave()}, {});
  EXPECT_TRUE(from_text(whole, read));
  EXPECT_FALSE(from_text(whole + "x", read)) << "no number";
}

}  // namespace
}  // namespace emulator::time_model
