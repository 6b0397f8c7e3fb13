# Signals to one of several ranks.

needs: ranks

  $ . "$WEFT"/tests/train_image/ranks.sh
  $ flags="--data random:100x8x8x3 --model resnet8 --augment cifar --workers 0 --sync-batch-norm --backend gloo --lr 0.02 --batch-size 4 --out run"
  $ begin() { rm -rf run; begin_by_hand 2 train_image $flags --epochs 100000 "$@"; until_true test -s run/metrics.jsonl; }

A signal to any rank stops all behind the same step, which the checkpoint is of.

  $ for to in 0 1; do
  >   begin; kill -TERM ${ranks[to]}; ended; grep -o 'stopped by SIGTERM after step [0-9]*' log.0 > line
  >   diff <(cut -d ' ' -f 6 line) <(state run/checkpoint_last.safetensors | sed -n 's/^step //p')
  > done; wc -l < line
  exit codes 75 75
  exit codes 75 75
  1

SIGUSR1 stops or saves, as --usr1 says.

  $ begin --usr1 stop; kill -USR1 ${ranks[1]}; ended; grep -o 'stopped by SIGUSR1 after step' log.0
  exit codes 75 75
  stopped by SIGUSR1 after step
  $ begin --usr1 save; kill -USR1 ${ranks[1]}; until_true grep -q "'saved '" log.0; kill -TERM ${ranks[1]}; ended; grep -o 'saved \|stopped by SIGTERM after step' log.0
  exit codes 75 75
  saved 
  stopped by SIGTERM after step

Ahead of the first step a signal is no failure, either: the ranks wait for a folder that another run has. They wait for one another's signals,
since the others may get theirs later: for at least 0.4 s.

  $ rm -r run; (exec train_image $flags --epochs 1000000) > holder.log 2>&1 & holder=$!; until_true test -s run/metrics.jsonl
  $ begin_by_hand 2 train_image $flags; until_true grep -q "'^run '" log.0; sent=$(date +%s%3N); kill -TERM ${ranks[@]}; ended; [ $(($(date +%s%3N) - sent)) -ge 400 ]
  exit codes 75 75

A launcher that ends a job which has failed sends SIGTERM, too. That is no reason to submit the job again.

  $ begin_by_hand 2 train_image $flags; until_true grep -q "'^run '" log.0; kill -KILL ${ranks[1]}; wait ${ranks[1]} 2> killed; until_true grep -q "'has died'" log.0; kill -TERM ${ranks[0]}; ended
  exit codes 143 137
  $ kill -KILL $holder; wait $holder 2> killed || true
