# pytorch.t with two ranks, whose names begin with `module.`.

needs: yaml zip torch ranks

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { ranks 2 train_multi_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ mkdir -p outputs/longer; train --config=second > out; mv outputs/second/0 outputs/longer/0
  $ python3 "$WEFT"/tests/nersc/pytorch_trainer.py outputs/longer/0/checkpoints/ckpt.tar module. > said
  $ near 1e-9 <(grep lr said | numbers) <(printf '0.0006545084971874737\n0.00034549150281252633\n')
  $ train --config=longer > out; grep '^Time' out
  Time taken for epoch 4 is …
  Time taken for epoch 5 is …
  $ torch_file outputs/longer/0/checkpoints/ckpt.tar | jq -c '[.iters, .optimizer_state_dict.state["0"].step.values]'
  [9,[9]]
