# Every grid of data x model ranks gives the losses of one rank.

needs: hdf5 yaml ranks

Losses have six digits. Sums of the ranks come in another order, which moves losses of order 1 by some 1e-6.

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ train() { ranks "$1" train_vit --device cpu --yaml_config ViT.yaml "${@:2}"; }
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=//p' "$1"; }
  $ train 1 --num_iters 20 --run_num grid > one; losses one | wc -l
  8
  $ for grid in '2 1' '2 2' '4 2' '4 4'; do
  >   set -- $grid; train $1 --num_iters 20 --run_num grid$1 --row_parallel_size $2 > many; near 5e-6 <(losses many) <(losses one)
  >   echo "$1 ranks, $2 of the model: $(grep -o 'DONE.*' many | sort | tr '\n' ' ')"
  > done
  2 ranks, 1 of the model: DONE ---- rank 0 DONE ---- rank 1
  2 ranks, 2 of the model: DONE ---- rank 0 DONE ---- rank 1
  4 ranks, 2 of the model: DONE ---- rank 0 DONE ---- rank 1 DONE ---- rank 2 DONE ---- rank 3
  4 ranks, 4 of the model: DONE ---- rank 0 DONE ---- rank 1 DONE ---- rank 2 DONE ---- rank 3
  $ (cd logs/base; ls -d ?[GM]*/*)
  1GPU/grid
  2GPU/grid2
  2MP/grid2
  2MP/grid4
  4MP/grid4

Ranks that divide the layers may divide the tokens: 8 of a field, or 6 by 4 ranks.

  $ train 4 --num_iters 20 --run_num tokens --row_parallel_size 2 --sequence_parallel > many; near 5e-6 <(losses many) <(losses one)
  $ sed 's/img_size: .*/img_size: [16, 24]/' ViT.yaml > six.yaml; train 1 --yaml_config six.yaml --num_iters 10 --run_num six > six 2> said
  $ train 4 --yaml_config six.yaml --num_iters 10 --run_num six --row_parallel_size 4 --sequence_parallel > many 2> said; near 5e-6 <(losses many) <(losses six)

They do whatever divides what. Of 47 and 17 samples in steps of 16, three rows have 6, 5 and 5 of a step, and the last step of a validation has one
sample.

  $ sed 's/limit_nsamples: None/limit_nsamples: 47/; s/limit_nsamples_val: None/limit_nsamples_val: 17/' ViT.yaml > odd.yaml
  $ train 1 --yaml_config odd.yaml --num_iters 6 --run_num rest > one 2> warned; losses one | wc -l
  6
  $ for grid in '1 2' '2 1' '2 2' '3 1' '3 2' '4 1' '4 2'; do
  >   set -- $grid; train $(($1 * $2)) --yaml_config odd.yaml --num_iters 6 --run_num rest$1x$2 --row_parallel_size $2 > many 2> warned
  >   near 5e-6 <(losses many) <(losses one) && echo "$1 data x $2 model ranks"
  > done
  1 data x 2 model ranks
  2 data x 1 model ranks
  2 data x 2 model ranks
  3 data x 1 model ranks
  3 data x 2 model ranks
  4 data x 1 model ranks
  4 data x 2 model ranks

A checkpoint of two model ranks goes on with four.

  $ sed "s/'cosine'/'none'/" ViT.yaml > constant.yaml; moved() { train "$1" --yaml_config constant.yaml --run_num moved "${@:2}" 2> warned; }
  $ moved 1 --num_iters 20 > one; moved 2 --num_iters 10 --row_parallel_size 2 > out; cp -r logs/base/2MP/moved logs/base/4MP
  $ moved 4 --num_iters 20 --row_parallel_size 4 --resume > out; near 5e-6 <(losses logs/base/4MP/moved/out.log) <(losses one)

With --noddp each row trains by itself.

  $ train 2 --num_iters 10 --run_num ddp > with 2> warned; train 2 --num_iters 10 --noddp --run_num noddp > without 2> warned
  $ paste <(losses with) <(losses without) | awk '$1 != $2 { other = 1 } END { print NR, other }'
  4 1

Grids that do not fit are refused. Ranks that wait for the first to end may tell of that, too.

  $ refused() { train "$@" &> said && echo accepted; sed -n 's/ (train_vit --help.*//; /error: \(--\|global\)/p' said | sort -u; }
  $ refused 3 --row_parallel_size 2
  train_vit: error: --row_parallel_size: 2 does not divide 3 ranks
  $ refused 3 --pipeline_parallel_size 2
  train_vit: error: --pipeline_parallel_size: 2 does not divide 3 ranks
  $ refused 2 --pipeline_parallel_size 2 --row_parallel_size 2
  train_vit: error: --row_parallel_size: 2 does not divide 1 ranks of each stage
  $ refused 2 --pipeline_parallel_size 2 --pipeline_chunks 2
  train_vit: error: --pipeline_parallel_size: 2 blocks (depth) are too few for 2 stages of 2 chunks
  $ sed 's/global_batch_size: 16/global_batch_size: 2/' ViT.yaml > two.yaml; refused 3 --yaml_config two.yaml
  train_vit: error: global_batch_size: expected at least one sample for each of 3 data ranks, got 2
