// SPDX-License-Identifier: Apache-2.0
#include "core/dlpack.h"

#include <cstdint>
#include <memory>

// The binary interface of DLPack 0.2 to 0.8: sizes and order of the members, and the numbers of the enumerations.
struct DLDevice {
  int32_t type, index;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t* sizes;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};
static_assert(sizeof(DLManagedTensor) == 64);

namespace weft {
namespace {

constexpr int32_t kCpu = 1, kCuda = 2;
constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;

struct Coded {
  DType dtype;
  uint8_t code, bits;
};
constexpr Coded kDtypes[] = {{DType::f32, kFloat, 32},  {DType::f64, kFloat, 64},  {DType::bf16, kBfloat, 16},
                             {DType::f16, kFloat, 16},  {DType::i64, kInt, 64},    {DType::i32, kInt, 32},
                             {DType::u8, kUnsigned, 8}, {DType::boolean, kBool, 8}};

constexpr bool in_order() {
  for (int i = 0; i < 8; ++i)
    if (static_cast<int>(kDtypes[i].dtype) != i) return false;
  return true;
}
static_assert(in_order());

/// An exported struct points to this.
struct Handed {
  Tensor tensor;
  std::array<int64_t, kMaxRank> sizes, strides;
  DLManagedTensor managed;
};

void release(DLManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

DType dtype_of_code(const DLDataType& type) {
  for (const Coded& known : kDtypes)
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return known.dtype;
  fail("from_dlpack: no dtype of Weft has type code ", int{type.code}, ", ", int{type.bits}, " bits and ", type.lanes,
       " lanes");
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& x) {
  WEFT_CHECK(x.defined(), "to_dlpack: expected a tensor, got none");
  WEFT_CHECK(!x.requires_grad(), "to_dlpack: ", x,
             " requires a gradient, which no other library can add to. Hand out detach()");
  auto handed = std::make_unique<Handed>();
  for (Storage* memory = x.storage().get(); memory != nullptr; memory = memory->whole().get()) memory->set_exported();
  const kernels::View& view = x;  // errors where sharded memory is away
  handed->tensor = x;
  handed->sizes = view.sizes;
  handed->strides = view.strides;
  const Coded& type = kDtypes[static_cast<int>(x.dtype())];
  handed->managed = {{view.data,
                      {x.device().kind == DeviceKind::cpu ? kCpu : kCuda, x.device().index},
                      view.rank,
                      {type.code, type.bits, 1},
                      handed->sizes.data(),
                      handed->strides.data(),
                      0},
                     handed.get(),
                     [](DLManagedTensor* self) { delete static_cast<Handed*>(self->context); }};
  return &handed.release()->managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  WEFT_CHECK(managed != nullptr, "from_dlpack: expected a tensor, got none");
  std::unique_ptr<DLManagedTensor, decltype(&release)> owned(managed, &release);
  const DLTensor& given = managed->tensor;
  WEFT_CHECK(given.device.type == kCpu || given.device.type == kCuda,
             "from_dlpack: expected a tensor on cpu or cuda, got one on DLPack's device ", given.device.type);
  WEFT_CHECK(given.rank >= 0 && given.rank <= kMaxRank, "from_dlpack: expected at most ", kMaxRank, " dimensions, got ",
             given.rank);
  const Device device{given.device.type == kCpu ? DeviceKind::cpu : DeviceKind::cuda, given.device.index};
  kernels::View view{
      static_cast<char*>(given.data) + given.byte_offset, dtype_of_code(given.dtype), given.rank, {}, {}};
  int64_t dense = 1;
  for (int d = given.rank - 1; d >= 0; --d) {
    view.sizes[d] = given.sizes[d];
    view.strides[d] = given.strides != nullptr ? given.strides[d] : dense;
    dense *= view.sizes[d];
    WEFT_CHECK(view.strides[d] >= 0 || view.sizes[d] <= 1, "from_dlpack: dimension ", d, " of ", view, " has stride ",
               view.strides[d], ": negative strides are not supported. Copy the tensor first");
  }
  const Tensor memory = Tensor::wrap(view.data, {view.span()}, view.dtype, device, [managed] { release(managed); });
  static_cast<void>(owned.release());  // now `memory` frees it
  return memory.alias(view);
}

}  // namespace weft
