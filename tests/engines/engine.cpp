// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/engine.h"

#include <cstdlib>
#include <thread>

#include "kernels/contracts/matmul.h"
#include "kernels/engines/cublaslt.h"
#include "kernels/engines/cudnn.h"
#include "kernels/engines/vendor_library.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::Engine;
using kernels::EngineGuard;
using kernels::View;

TEST(Engine, NamesBothWays) {
  for (const Engine one : {Engine::own, Engine::vendor, Engine::automatic})
    EXPECT_EQ(kernels::parse_engine("x", std::string(kernels::name(one))), one);
  EXPECT_EQ(error_text([] { kernels::parse_engine("WEFT_ENGINE", "cudnn"); }),
            "WEFT_ENGINE: expected own, vendor or auto, got 'cudnn'");
}

TEST(Engine, GuardsNestAndBelongToTheirThread) {
  const Engine before = kernels::engine();
  {
    const EngineGuard outer(Engine::vendor);
    EXPECT_EQ(kernels::engine(), Engine::vendor);
    {
      const EngineGuard inner(Engine::automatic);
      EXPECT_EQ(kernels::engine(), Engine::automatic);
    }
    EXPECT_EQ(kernels::engine(), Engine::vendor);
    Engine seen = Engine::vendor;
    std::thread([&] { seen = kernels::engine(); }).join();
    EXPECT_EQ(seen, before);
  }
  EXPECT_EQ(kernels::engine(), before);
}

/// y = a @ b of 5x4x3 on the device.
std::vector<double> product(DeviceKind kind) {
  std::vector<double> a(20), b(12);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i) - 5;
  const DeviceArray a_array(kind, DType::f32, {1, 5, 4}, a), b_array(kind, DType::f32, {1, 4, 3}, b);
  const DeviceArray y(kind, DType::f32, {1, 5, 3});
  kernels::matmul(queue_on(kind), y, a_array, b_array, View::none(), {});
  return y.host();
}

// The cpu has own kernels alone: whatever the engine is, they run. cuda: the other tests of this folder.
TEST(Engine, TheCpuRunsItsOwnKernels) {
  const auto want = product(DeviceKind::cpu);
  for (const Engine one : {Engine::own, Engine::vendor, Engine::automatic}) {
    const EngineGuard guard(one);
    EXPECT_EQ(product(DeviceKind::cpu), want) << kernels::name(one);
  }
}

/// In a process of its own, since a process reads its environment once.
TEST(EngineDeathTest, AnInvalidVariableIsOneErrorOfTheFirstCall) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("WEFT_ENGINE", "fast", 1);
        std::fputs(error_text([] { product(DeviceKind::cuda); }).c_str(), stderr);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^WEFT_ENGINE: expected own, vendor or auto, got 'fast'$");
}

TEST(Engine, APartThatLacksNamesItselfAndTheCure) {
  using namespace kernels::vendor;
  if (emulated() || cublaslt::version() != "no cuBLASLt" || cudnn::version() != "no cuDNN")
    GTEST_SKIP() << "this build has the libraries";
  EXPECT_EQ(cublaslt::missing(),
            "this build has no cuBLASLt. Configure with -DWEFT_CUDA=ON and the toolkit's cuBLAS headers (cublasLt.h)");
  EXPECT_EQ(cudnn::missing(),
            "this build has no cuDNN. Configure with -DWEFT_CUDA=ON and -DWEFT_CUDNN_ROOT=… (the folder that holds "
            "include/cudnn.h of cuDNN 9)");
  const kernels::Queue queue;
  const View none;
  const kernels::MatmulArguments arguments;
  EXPECT_EQ(error_text([&] {
              cublaslt::matmul({queue, none, none, none, none, arguments, kernels::Activation::none, {}}, 0);
            }),
            "matmul: " + cublaslt::missing());
  const kernels::Conv2dArguments convolution;
  EXPECT_EQ(error_text([&] {
              cudnn::conv2d({Direction::backward_input, queue, none, none, none, none, convolution}, 0);
            }),
            "conv2d_backward_input: " + cudnn::missing());
}

// Under weft-emulate cuBLASLt is the emulator's, which computes, and cuDNN NVIDIA's, which cannot.
TEST(Engine, UnderTheEmulatorVendorIsItsCublasLtAndNoCudnn) {
  using namespace kernels::vendor;
  if (!emulated() || !runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs weft-emulate";
  if (cublaslt::missing().starts_with("this build has no cuBLASLt")) GTEST_SKIP() << cublaslt::missing();
  EXPECT_EQ(cublaslt::missing(), "");
  EXPECT_NE(cudnn::missing(), "");
  const auto want = product(DeviceKind::cuda);
  for (const Engine one : {Engine::automatic, Engine::vendor}) {
    const EngineGuard guard(one);
    EXPECT_EQ(product(DeviceKind::cuda), want) << kernels::name(one);  // whole numbers: exact
  }
}

// A library that the emulator does not have beside its GPU is NVIDIA's.
TEST(EngineDeathTest, UnderTheEmulatorNvidiasLibrariesSayWhyNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("WEFT_EMULATE_GPU", "h100", 1);
        setenv("LD_LIBRARY_PATH", "/nowhere", 1);
        std::fputs(kernels::vendor::why_not_under_emulator("libcublasLt.so.13").c_str(), stderr);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^libcublasLt.so.13 holds machine code, and weft-emulate executes PTX");
}

}  // namespace
}  // namespace weft::tests
