// SPDX-License-Identifier: Apache-2.0
#include "dist/group/backends.h"

namespace weft::dist {

ProcessGroupPtr make_nccl_group(GroupRecordPtr, std::shared_ptr<Store>) {
  fail(
      "process group: backend nccl: built without CUDA or without NCCL's header. Configure with -DWEFT_CUDA=ON and "
      "-DWEFT_NCCL_ROOT=… (the folder that holds include/nccl.h)");
}

}  // namespace weft::dist
