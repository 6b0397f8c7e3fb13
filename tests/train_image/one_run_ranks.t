# All ranks of a run whose folder another one has say why they end.

needs: ranks

  $ . "$WEFT"/tests/train_image/ranks.sh; small="--data random:64x8x8x3 --model resnet8 --device cpu --workers 0 --backend gloo --batch-size 8 --out run"
  $ train_image $small --epochs 1000000 > first.log 2>&1 & first=$!; until_true test -e run/checkpoint_last.safetensors
  $ by_hand 2 train_image $small --epochs 1
  exit codes 1 1
  $ for rank in 0 1; do tail -n 1 log.$rank | sed "s/$first/FIRST/; s/ on $(uname -n),/ on HOST,/"; done; kill -0 $first && kill -KILL $first
  train_image: error: run folder: run is in use by process FIRST on HOST, and was for the 10 s that this run has waited. End that run, or name another folder
  train_image: error: run folder: run is in use by process FIRST on HOST, and was for the 10 s that this run has waited. End that run, or name another folder
