# Every pipeline gives the losses of one rank.

needs: hdf5 yaml ranks

47 samples come in steps of 16, of which a data rank of three has 5, and in micro-batches that divide neither. Clipping acts.

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ sed 's/limit_nsamples: None/limit_nsamples: 47/; s/limit_nsamples_val: None/limit_nsamples_val: 17/; s/  depth: 2/  depth: 4/' ViT.yaml > deep.yaml
  $ train() { ranks "$1" train_vit --device cpu --yaml_config "${@:2}" 2> warned; }
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=//p' "$1"; }
  $ train 1 deep.yaml --num_iters 6 --max_grad_norm 0.05 --run_num one > one; losses one | wc -l
  6
  $ grid() {  # grid STAGES CHUNKS DATA MODEL MICRO-BATCHES FLAG…
  >   train $(($1 * $3 * $4)) deep.yaml --num_iters 6 --max_grad_norm 0.05 --run_num "$1x$2x$3x$4" --pipeline_parallel_size "$1" \
  >     --pipeline_chunks "$2" --row_parallel_size "$4" --micro_batches "$5" "${@:6}" > many; near 5e-6 <(losses many) <(losses one); grep -o 'ranks: .*stages' many
  > }
  $ grid 2 1 1 1 3
  ranks: 2 over …, 1 data x 1 model x 2 stages
  $ grid 4 1 1 1 0
  ranks: 4 over …, 1 data x 1 model x 4 stages
  $ grid 2 2 1 1 5
  ranks: 2 over …, 1 data x 1 model x 2 stages
  $ grid 2 1 2 1 0
  ranks: 4 over …, 2 data x 1 model x 2 stages
  $ grid 2 2 3 1 3
  ranks: 6 over …, 3 data x 1 model x 2 stages
  $ grid 2 1 1 2 4
  ranks: 4 over …, 1 data x 2 model x 2 stages
  $ grid 2 2 2 2 3
  ranks: 8 over …, 2 data x 2 model x 2 stages
  $ sed -i 's/img_size: .*/img_size: [16, 24]/' deep.yaml; train 1 deep.yaml --num_iters 6 --max_grad_norm 0.05 --run_num six > one
  $ grid 2 2 1 4 3 --sequence_parallel
  ranks: 8 over …, 1 data x 4 model x 2 stages
  $ (cd logs/base; ls -d *PP/*/out.log)
  2MP2PP/2x1x1x2/out.log
  2MP2PP/2x2x2x2/out.log
  2PP/2x1x1x1/out.log
  2PP/2x1x2x1/out.log
  2PP/2x2x1x1/out.log
  2PP/2x2x3x1/out.log
  4MP2PP/2x2x1x4/out.log
  4PP/4x1x1x1/out.log

A checkpoint of a pipeline goes on at any grid.

  $ sed "s/'cosine'/'none'/" ViT.yaml > constant.yaml; staged() { train "$1" constant.yaml --run_num staged --num_iters "${@:2}"; }
  $ staged 1 20 > whole; losses whole | wc -l
  8
  $ staged 2 10 --pipeline_parallel_size 2 --micro_batches 3 > out; cd logs/base; mv 1GPU/staged alone; mkdir 2GPU; cp -r 2PP/staged 1GPU
  $ cp -r 2PP/staged 2GPU; cp -r 2PP/staged 2MP2PP; cd ../..; same_losses() { near 5e-6 <(losses logs/base/"$1"/staged/out.log) <(losses whole); }
  $ staged 1 20 --resume > out && same_losses 1GPU
  $ staged 2 20 --resume > out && same_losses 2GPU
  $ staged 4 20 --resume --row_parallel_size 2 --pipeline_parallel_size 2 > out && same_losses 2MP2PP
