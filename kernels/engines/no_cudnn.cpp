// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn.h"

namespace weft::kernels::vendor::cudnn {

const std::string& missing() {
  static const std::string text =
      "this build has no cuDNN. Configure with -DWEFT_CUDA=ON and -DWEFT_CUDNN_ROOT=… (the folder that holds "
      "include/cudnn.h of cuDNN 9)";
  return text;
}
std::string version() { return "no cuDNN"; }
bool supports(const Conv2dCall&) { return false; }
int variants(const Conv2dCall&) { return 0; }
void conv2d(const Conv2dCall& call, int) { fail(op_of(call.direction), ": ", missing()); }
std::string refusal(const AttentionCall&) { return missing(); }
int variants(const AttentionCall&) { return 0; }
void attention(const AttentionCall& call, int) { fail(call.op(), ": ", missing()); }
std::string refusal(const RecurrentCall&) { return missing(); }
int variants(const RecurrentCall&) { return 0; }
int64_t reserve(const RecurrentCall&) { return 0; }
void recurrent(const RecurrentCall& call) { fail(call.op(), ": ", missing()); }

}  // namespace weft::kernels::vendor::cudnn
