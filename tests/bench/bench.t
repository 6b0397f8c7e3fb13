# bench measures cases, one a line

  $ bench --list | sed -n 1,3p
  resnet18_train_f32	images/s
  resnet18_infer_f32	images/s
  resnet18_train_bf16	images/s

`cases` has the name and the unit of each line, once it is `case<TAB>value<TAB>unit`, has a value above 0, and stands there once.

  $ cases() { awk -F '\t' 'NF != 3 || $2 !~ /^[0-9.]+(e[-+][0-9]+)?$/ || $2 <= 0 || seen[$1]++ { print "wrong: " $0 } { print $1 "\t" $3 }'; }
  $ bench --tiny --seconds 0 --repetitions 2 --filter '^add_16$|^startup$' | cases
  add_16	ns
  startup	ms

Each case of the suite `cpu` runs. `loader_jpeg` needs libjpeg-turbo (jpeg.t).

  $ bench --suite cpu --tiny --seconds 0 --repetitions 1 --filter '^(?!loader_jpeg$)' > run 2> notes && cases < run | sort > ran
  $ bench --list --filter '^(?!loader_jpeg$)' | sort | diff - ran

Peers and notes refer to these.

  $ grep -oE '^((resnet(18|50)_(train|infer)|matmul_(1024|2048))_(f32|bf16)|(conv3x3|linear|(batch|layer)_norm)_forward(_backward)?)\s.*' ran
  batch_norm_forward	ms
  batch_norm_forward_backward	ms
  conv3x3_forward	ms
  conv3x3_forward_backward	ms
  layer_norm_forward	ms
  layer_norm_forward_backward	ms
  linear_forward	ms
  linear_forward_backward	ms
  matmul_1024_bf16	GFLOP/s
  matmul_1024_f32	GFLOP/s
  matmul_2048_bf16	GFLOP/s
  matmul_2048_f32	GFLOP/s
  resnet18_infer_bf16	images/s
  resnet18_infer_f32	images/s
  resnet18_train_bf16	images/s
  resnet18_train_f32	images/s
  resnet50_infer_bf16	images/s
  resnet50_infer_f32	images/s
  resnet50_train_bf16	images/s
  resnet50_train_f32	images/s
  $ grep -oE '^(cross_entropy_forward_backward|add(_inplace)?_16m|(sgd|adam|adamw)_step|add_16(_autograd)?|chain_(for|back)ward|startup|resnet.*memory)\s.*' ran
  adam_step	ms
  adamw_step	ms
  add_16	ns
  add_16_autograd	ns
  add_16m	GB/s
  add_inplace_16m	GB/s
  chain_backward	ns
  chain_forward	ns
  cross_entropy_forward_backward	ms
  resnet18_train_memory	MiB
  resnet50_train_memory	MiB
  sgd_step	ms
  startup	ms

So does each of the suite `ops`.

  $ bench --suite ops --tiny --seconds 0 > run 2> notes && cases < run | sort > ran; bench --suite ops --tiny --list | sort | diff - ran
  $ grep -cE '^(where_f32|softplus_bf16|permutation_f32)\s' ran
  3

Variants alternate in one process.

  $ bench --tiny --seconds 0.001 --repetitions 1 --filter '^gpt2_train_bf16$' --variants dense_logits,chunked_loss 2> notes | cases
  gpt2_train_bf16	sequences/s
  gpt2_train_bf16@dense_logits	sequences/s
  gpt2_train_bf16@chunked_loss	sequences/s

The kernels of a case are listed in a file; time that is used up is told.

  $ bench --tiny --seconds 0 --filter '^linear_forward$' --kernels . | cases; grep -c matmul linear_forward.txt
  linear_forward	ms
  1
  $ bench --tiny --seconds-total 0.000001 --filter '^add_16$'
  bench: add_16: not measured, --seconds-total is used up

Peers in Python are valid Python.

  $ python3 -c 'import ast, sys; [ast.parse(open(name).read()) for name in sys.argv[1:]]' "$WEFT"/benchmarks/peers/*.py

# Mistakes

  $ fails bench --filter nothing_like_it; fails bench --filter '['; fails bench --repetitions 0; fails bench --suite tpu; fails bench --variants x
  bench: no case of the suite cpu matches 'nothing_like_it'. --list prints them all [1]
  bench: --filter: '[' is no regular expression: … [2]
  bench: --repetitions: Value 0 not in range … [2]
  bench: --suite: tpu not in {…} [2]
  bench: variants: expected names among dense_logits, chunked_loss, looped_moments, scaled_branches, whole_masks, pdl, two_backward_kernels, separated by commas, got 'x' [1]
  $ fails bench --tiny --filter '^startup$' --variants dense_logits
  bench: startup: --variants: it has no steps [1]
  $ WEFT_VARIANT=x bench --tiny --seconds 0 --filter '^cross_entropy'
  bench: cross_entropy_forward_backward: WEFT_VARIANT: expected names among dense_logits, chunked_loss, looped_moments, scaled_branches, whole_masks, pdl, two_backward_kernels, separated by commas, got 'x'
  [1]
  $ fails bench --fast; fails bench --device tpu; fails bench --suite gpu; fails bench --process add_16
  bench: The following argument was not expected: --fast [2]
  bench: device: expected cpu, cuda, cuda:N or emulated, got 'tpu' [1]
  bench: device: 'cuda' cannot be used: … [1]
  bench: no case 'add_16' has a process of its own [2]
