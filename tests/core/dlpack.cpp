// SPDX-License-Identifier: Apache-2.0
#include "core/dlpack.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft {
namespace {

/// The 64 bytes of a struct as another library's header lays them out.
struct Foreign {
  void* data;
  int32_t device_type = 1, device_index = 0, rank;
  uint8_t code = 2, bits = 32;
  uint16_t lanes = 1;
  int64_t *sizes, *strides;
  uint64_t byte_offset = 0;
  void* context;
  void (*deleter)(Foreign*);
  DLManagedTensor* managed() { return reinterpret_cast<DLManagedTensor*>(this); }
};
static_assert(sizeof(Foreign) == 64);

TEST(DLPack, OutAndInSharesTheMemory) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Tensor x = Tensor::arange(24, DType::f32, {kind, 0}).reshape({2, 3, 4}).transpose(0, 2);
    {
      const Tensor y = from_dlpack(to_dlpack(x));
      EXPECT_EQ(y.sizes(), (Shape{4, 3, 2}));
      EXPECT_EQ(y.device(), x.device());
      EXPECT_EQ(y.raw_data(), x.raw_data());
      for (int d = 0; d < 3; ++d) EXPECT_EQ(y.stride(d), x.stride(d));
      y.select(0, 1).fill_(-1);
    }
    EXPECT_EQ(x.slice(0, 0, 2).to_vector<float>(), (std::vector<float>{0, 12, 4, 16, 8, 20, -1, -1, -1, -1, -1, -1}));
  }
}

TEST(DLPack, EveryDtypeComesBack) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean}) {
    const Tensor x = Tensor::from<double>({1, 0, 1}).to(dtype);
    const Tensor y = from_dlpack(to_dlpack(x));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{1, 0, 1})) << dtype;
  }
}

TEST(DLPack, TheDeleterRunsOnceWhenTheLastTensorGoes) {
  float numbers[] = {9, 1, 2, 3, 4};
  int64_t sizes[] = {2, 2};
  int deleted = 0;
  Foreign foreign{.data = numbers,
                  .rank = 2,
                  .sizes = sizes,
                  .strides = nullptr,
                  .byte_offset = 4,
                  .context = &deleted,
                  .deleter = [](Foreign* self) { ++*static_cast<int*>(self->context); }};
  Tensor part;
  {
    const Tensor x = from_dlpack(foreign.managed());
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
    part = x.select(0, 1);
  }
  EXPECT_EQ(deleted, 0);
  part = {};
  EXPECT_EQ(deleted, 1);
}

TEST(DLPack, WhatCannotBeTakenIsReleased) {
  float number = 1;
  int64_t sizes[9] = {1, 2}, strides[9] = {1, -1};
  int deleted = 0;
  const Foreign good{.data = &number,
                     .rank = 1,
                     .sizes = sizes,
                     .strides = strides,
                     .context = &deleted,
                     .deleter = [](Foreign* self) { ++*static_cast<int*>(self->context); }};
  const auto text = [](Foreign wrong) { return error_text([&] { from_dlpack(wrong.managed()); }); };
  Foreign wrong = good;
  wrong.lanes = 4;
  EXPECT_EQ(text(wrong), "from_dlpack: no dtype of Weft has type code 2, 32 bits and 4 lanes");
  wrong = good;
  wrong.device_type = 10;
  EXPECT_EQ(text(wrong), "from_dlpack: expected a tensor on cpu or cuda, got one on DLPack's device 10");
  wrong = good;
  wrong.rank = 9;
  EXPECT_EQ(text(wrong), "from_dlpack: expected at most 8 dimensions, got 9");
  wrong = good;
  wrong.rank = 2;
  EXPECT_EQ(text(wrong),
            "from_dlpack: dimension 1 of f32[0,2] has stride -1: negative strides are not supported. Copy "
            "the tensor first");
  EXPECT_EQ(deleted, 4);
  EXPECT_EQ(error_text([] { from_dlpack(nullptr); }), "from_dlpack: expected a tensor, got none");
  EXPECT_EQ(error_text([] { to_dlpack(Tensor()); }), "to_dlpack: expected a tensor, got none");
  EXPECT_EQ(error_text([] { to_dlpack(Tensor::zeros({2}).requires_grad_()); }),
            "to_dlpack: f32[2] on cpu requires a gradient, which no other library can add to. Hand out detach()");
}

}  // namespace
}  // namespace weft
