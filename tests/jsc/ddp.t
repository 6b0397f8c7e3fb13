# ddp trains on the tasks of srun.

needs: jpeg zip ranks

It finds its place by Slurm's variables alone.

  $ . "$WEFT"/tests/jsc/insects.sh; insects data/hymenoptera_data; jobs_here
  $ dry() { SRUN_NODES='jwb[0021-0022]' SRUN_STEP_NODES=2 SRUN_TASKS=2 srun ddp --dry-run --device cpu | grep ^ranks | sort; }
  $ SYSTEMNAME=juwelsbooster dry
  ranks   rank 0 of 2 (Slurm), which meet at jwb0021i:12354
  ranks   rank 1 of 2 (Slurm), which meet at jwb0021i:12354
  $ dry
  ranks   rank 0 of 2 (Slurm), which meet at jwb0021:12354
  ranks   rank 1 of 2 (Slurm), which meet at jwb0021:12354
  $ MASTER_PORT=12399 dry
  ranks   rank 0 of 2 (Slurm), which meet at jwb0021:12399
  ranks   rank 1 of 2 (Slurm), which meet at jwb0021:12399
  $ SLURM_NTASKS=4 ddp --dry-run --device cpu | grep ^ranks
  ranks   alone

Two tasks train one model by the job script. The first one alone prints and writes; five images over two ranks are three steps.

  $ export MASTER_PORT=$(free_port); SRUN_TASKS=2 run_ddp.sh --epochs 1 --device cpu 2> said
  Epoch 0: train_cross_entropy=… val_accuracy=…
  Test: …
  elapsed: 00 hours [0-9][0-9] min [0-9][0-9] sec (re)
  $ grep -o '^ranks .*' said
  ranks   2 over gloo (Slurm)
  $ ls -d tb_logs/my_model/*; ls tb_logs/my_model/version_0
  tb_logs/my_model/version_0
  config.yaml
  events.out.tfevents.…
  hparams.yaml
  metrics.jsonl
  $ torch_file image_classification_model.pt | jq -c '.global_step, (.state_dict | length > 100, any(keys[]; contains("module.")))'
  3
  true
  false

Tasks with other flags or images are named.

  $ cp -r data/hymenoptera_data a; cp -r a b; rm b/train/bees/e.jpg; both() { SRUN_TASKS=2 srun sh -c "ddp --epochs 1 --device cpu $1" 2>&1 | grep -oE '(settings|data): the .* not the same.*' | sort -u; }
  $ both '--data a --seed $SLURM_PROCID'
  settings: the flags are not the same on all ranks: at entry … rank 0 has 'seed = 0', rank 1 has 'seed = 1'. Start all ranks with the same flags
  [1]
  $ both '--data $([ $SLURM_PROCID = 0 ] && echo a || echo b)'
  data: the set is not the same on all ranks: at entry 1 rank 0 has '5 images for training', rank 1 has '4 images for training'. All ranks must read the same images
  [1]
