# NERSC's programs are ranked by their validation loss

needs: yaml zip

An untracked configuration, as the shipped default: the sweep makes its runs write the metric that ranks them.

  $ cat > small.yaml <<'END'
  > default:
  >   num_samples: 4
  >   img_size: 4
  >   depth: 2
  >   batch_size: 4
  >   valid_batch_size: 4
  >   max_epochs: 2
  > END
  $ weft-sweep --grid lr=1e-4,0.5 batch_size=2,4 --metric val_loss --out sweeps/lr/ -- train_multi_gpu --yaml_config small.yaml --config default --device cpu | grep last
  rank  point                 last val_loss          best   at step      time
  $ ls sweeps/lr/lr=1e-4,batch_size=2/sweeps/lr/0/wandb/metrics.jsonl; grep lr: sweeps/lr/lr=1e-4,batch_size=2/sweeps/lr/0/hyperparams.yaml
  sweeps/lr/lr=1e-4,batch_size=2/sweeps/lr/0/wandb/metrics.jsonl
  lr: 0.0001
