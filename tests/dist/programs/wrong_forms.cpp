// SPDX-License-Identifier: Apache-2.0
// Models that are given in a form which does not compile: the message names the cure. WEFT_FORM picks one.
#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp.h"
#include "nn/linear.h"
#include "nn/sequential.h"

using namespace weft;  // NOLINT(google-build-using-namespace)

int main() {
  const dist::ProcessGroupPtr group = dist::make_process_group_alone();
  const auto model = std::make_shared<nn::Linear>(2, 2);
#if WEFT_FORM == 0
  dist::DDP ddp(model, group);
  dist::FSDP fsdp(nn::sequential(std::make_shared<nn::Linear>(2, 2)), group, {.max_gathered = 1});
#elif WEFT_FORM == 1
  dist::FSDP fsdp(model->parameters(), group);
#elif WEFT_FORM == 2
  dist::DDP ddp(model->parameters(), group, dist::DdpOptions{});
#elif WEFT_FORM == 3
  dist::FSDP fsdp(*model, group);
#elif WEFT_FORM == 4
  nn::sequential(std::make_shared<nn::LinearOptions>());
#endif
}
