# A checkpoint goes to PyTorch and comes back: it is the one that a PyTorch trainer of this workflow saves and loads.

needs: yaml zip torch

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ mkdir -p outputs/longer; train --config=second > out; mv outputs/second/0 outputs/longer/0
  $ python3 "$WEFT"/tests/nersc/pytorch_trainer.py outputs/longer/0/checkpoints/ckpt.tar '' > said; head -n 1 said
  iters epoch model_state optimizer_state_dict scheduler_state_dict

The learning rates are those of the cosine, 1e-3 (1 + cos(n pi / 5)) / 2, after epochs 2 and 3.

  $ near 1e-9 <(grep lr said | numbers) <(printf '0.0006545084971874737\n0.00034549150281252633\n')

The third epoch was PyTorch's, with one step of its own, which Adam has counted; the fourth and fifth are ours again.

  $ train --config=longer > out; grep '^Time' out
  Time taken for epoch 4 is …
  Time taken for epoch 5 is …
  $ torch_file outputs/longer/0/checkpoints/ckpt.tar | jq -c '[.iters, .optimizer_state_dict.state["0"].step.values]'
  [9,[9]]
