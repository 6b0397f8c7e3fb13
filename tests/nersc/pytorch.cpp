// SPDX-License-Identifier: Apache-2.0
// A run goes to PyTorch and comes back: the checkpoint is the one that a PyTorch trainer of this workflow saves and
// loads.
#include "io/torch/torch_object.h"
#include "tests/nersc/programs.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

/// A PyTorch user's trainer: the model under the workflow's names, Adam, the cosine, the five names. The file is
/// read, checked, taken one epoch further (on zeros, with zeros as targets), and saved in its place.
constexpr const char* kTrainer = R"(
import sys, torch
from torch import nn
path, prefix, torch_max = sys.argv[1], sys.argv[2], int(sys.argv[3])
def block(i, o): return nn.Sequential(nn.Conv2d(i, o, 3, padding='same'), nn.LeakyReLU(0.01))
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in, self.conv_hidden, self.conv_out = block(1, 64), nn.Sequential(block(64, 64)), block(64, 1)
    def forward(self, x): return self.conv_out(self.conv_hidden(self.conv_in(x)))
model = CNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=torch_max)
ckpt = torch.load(path)
assert list(ckpt)[:5] == ['iters', 'epoch', 'model_state', 'optimizer_state_dict', 'scheduler_state_dict'], list(ckpt)
assert all(key.startswith(prefix) for key in ckpt['model_state'])
model.load_state_dict({key[len(prefix):]: value for key, value in ckpt['model_state'].items()})
optimizer.load_state_dict(ckpt['optimizer_state_dict'])
scheduler.load_state_dict(ckpt['scheduler_state_dict'])
assert scheduler.last_epoch == ckpt['epoch'] + 1, scheduler.last_epoch
assert all(int(state['step']) == ckpt['iters'] for state in optimizer.state.values())
print('sum', float(model(torch.ones(1, 1, 12, 12)).double().sum()))
print('lr', optimizer.param_groups[0]['lr'])
x = torch.zeros(1, 1, 12, 12)
optimizer.zero_grad()
nn.functional.mse_loss(model(x), x).backward()
optimizer.step()
scheduler.step()
print('next lr', optimizer.param_groups[0]['lr'])
torch.save({'iters': ckpt['iters'] + 1, 'epoch': ckpt['epoch'] + 1,
            'model_state': {prefix + key: value for key, value in model.state_dict().items()},
            'optimizer_state_dict': optimizer.state_dict(), 'scheduler_state_dict': scheduler.state_dict()}, path)
)";

TEST(NerscPyTorch, GoesOnWithOurCheckpointAndWeWithIts) {
  if (shell("/usr/bin/python3 -c 'import torch'").exit_code != 0)
    GTEST_SKIP() << "NOT TESTED against PyTorch: install python3-torch to do so";
  for (const bool several : {false, true}) {
    if (several && !HAVE_RANKS) continue;
    const NerscFolder folder;
    const auto train = [&](const std::string& arguments) {
      return several ? train_on_two(folder, arguments) : train_single(folder, arguments);
    };
    const std::string yaml = read_text(folder / "small.yaml");
    const auto run_to = [&](int epochs) {
      folder.write("small.yaml", yaml + "run:\n  <<: *DEFAULT\n  max_cosine_lr_epochs: 5\n  max_epochs: " +
                                     std::to_string(epochs) + "\n");
      return train("--config=run");
    };
    ASSERT_EQ(run_to(2).exit_code, 0);
    folder.write("trainer.py", kTrainer);
    const std::string path = folder / "outputs/run/0/checkpoints/ckpt.tar";
    const Outcome torch =
        shell("/usr/bin/python3 " + (folder / "trainer.py") + " " + path + (several ? " module." : " ''") + " 5");
    ASSERT_EQ(torch.exit_code, 0) << torch.output;
    double sum = 0, lr = 0, next_lr = 0;
    ASSERT_EQ(std::sscanf(torch.output.c_str(), "sum %lf\nlr %lf\nnext lr %lf", &sum, &lr, &next_lr), 3)
        << torch.output;
    EXPECT_NEAR(lr, 1e-3 * 0.6545084971874737, 1e-9) << "1e-3 (1 + cos(2 pi / 5)) / 2";
    EXPECT_NEAR(next_lr, 1e-3 * 0.34549150281252633, 1e-9);
    const Outcome rest = run_to(4);
    ASSERT_EQ(rest.exit_code, 0) << rest.output;
    EXPECT_EQ(losses(rest.output).size(), 1u) << "the third epoch was PyTorch's: " << rest.output;
    EXPECT_THAT(rest.output, HasSubstr("Time taken for epoch 4 is "));
    const auto file = read_torch(path);
    EXPECT_EQ(file.at("iters", "").integer(""), 2 * 2 + 1 + 2);
    const auto& adam = std::get<TorchObject::Dict>(file.at("optimizer_state_dict", "").at("state", "").is);
    EXPECT_EQ(std::get<Tensor>(adam.at(0).value.at("step", "").is).item(), 2 * 2 + 1 + 2) << "its steps count";
  }
}

}  // namespace
}  // namespace weft::tests
