# The suite roofline, against values by hand

Nothing runs: it prints the floor of each kernel's time. `rows` has its lines as objects.

  $ rows() { bench --suite roofline "$@" | jq -Rn '(input / "\t") as $columns | inputs / "\t" | [$columns, map(tonumber? // .)] | transpose | map({(.[0]): .[1]}) | add'; }
  $ row() { jq -r --arg kernel "$2" --arg shapes "$3" 'select(.kernel == $kernel and .shapes == $shapes) | [.[$ARGS.positional[]]] | join(" ")' "$1" --args "${@:4}"; }

A product of 4096 x 4096 in bf16 has 3 x 4096² x 2 bytes and 2 x 4096³ flop, 4096 / 3 per byte: 137.4 GFLOP at 989.4, 312 and measured 790 TFLOP/s.

  $ rows --filter '^matmul_4096_bf16' | jq -c '[.MB, .GFLOP, .["flop/byte"], .bound, .["H200 us"], .["A100-80 us"], .["H200 measured us"]]'
  [100.7,137.4,1370,"product",138.9,440.5,174]

# A step of ResNet-50 on 256 images

Of 3x3, 64 to 64 channels on 56 x 56, each of three blocks has one: E = 256 x 56² x 64 elements in and out, 2 E x 9 x 64 flop, and nothing for the
statistics. An H100, whose memory is slower, waits for (2 E + 64² x 9) x 2 bytes.

  $ rows --filter '^resnet50' > resnet50
  $ row resnet50 conv2d_statistics "bf16[256,56,56,64] bf16[256,56,56,64] bf16[64,3,3,64]" calls MB GFLOP "H200 us" "H100 us"
  3 205.6 59.19 59.82 61.37

The convolution gave the statistics, so batch norm reads its input once and is memory's: the stem's has 2 x 2 bytes an element, with 4 operations, none of
a product.

  $ row resnet50 batch_norm_of_parts "bf16[3211264,64] bf16[3211264,64] f32[1,129]" MB "GH200 us" bound GFLOP "flop/byte"
  822.1 205.5 memory 0 1

All convolutions have the published 4.09 GMAC per image (torchvision's resnet50), and so have both gradients, but for the images' (60.42 GFLOP).

  $ row resnet50 conv2d_statistics all calls GFLOP; row resnet50 conv2d_backward_weight all GFLOP; row resnet50 conv2d_backward_input all GFLOP
  53 2093
  2093
  2032
  $ jq -c 'select(.kernel == "conv2d_statistics" and .shapes == "all") | .GFLOP / 2 / 256 - 4.087 | fabs < 0.002' resnet50
  true

The step has three times that, and the classifier's 3 x 2 x 256 x 2048 x 1000. Its time is the sum of its kernels'.

  $ row resnet50 all all GFLOP
  6221
  $ jq -s '(map(select(.shapes == "all" and .kernel != "all")["H200 us"]) | add) - (.[] | select(.shapes == "all" and .kernel == "all")["H200 us"]) | fabs < 10' resnet50
  true

# A step of ViT-B/16 on 256 images

An image's forward has 17.6 GMAC (Dosovitskiy et al. 2021): patches, 12 blocks with 12 D² per token, attention. Backward has twice of it, but no gradient
of the images.

  $ rows --filter '^vit_b16' > vit
  $ jq -n '197 as $T | 768 as $D | {patches: (196 * $D * 768), blocks: (12 * $T * 12 * $D * $D), head: ($D * 1000), attention: (12 * 2 * $T * $T * $D)} | map_values(. / 1e9)' > gmac
  $ jq 'add * 10 | round / 10' gmac
  17.6
  $ products() { jq -s 'map(select(.shapes == "all" and (.kernel | test("^(matmul|linear_backward)"))).GFLOP) | add' vit; }
  $ jq --argjson found "$(products)" '$found / (2 * 256 * (2 * .patches + 3 * .blocks + 3 * .head)) - 1 | fabs < 0.001' gmac
  true
  $ jq --argjson found "$(row vit attention_forward all GFLOP)" '$found / (2 * 256 * .attention) - 1 | fabs < 0.001' gmac
  true

Every linear layer's bias gradient comes with its weight's, and gelu's derivative with the product before it: what is still summed alone are the class token,
the positions and the loss, over the images.

  $ row vit linear_backward_weight all calls; row vit linear_backward_input all calls; row vit unary_backward all calls
  50
  12
  $ jq -r 'select(.kernel == "reduce" and .shapes != "all").shapes' vit
  f32[2,1] f32[2,256]
  bf16[1,1,768] bf16[256,1,768]
  bf16[1,196,768] bf16[256,196,768]

# As JSON

  $ rows --tiny > tiny; bench --suite roofline --tiny --json roofline.json > log
  $ jq '.chips | length' roofline.json; diff <(jq -c '.lines[] | [.step, .kernel]' roofline.json) <(jq -c '[.step, .kernel]' tiny)
  4
  $ jq --slurpfile json roofline.json -s '[., $json[0].lines] | transpose | all((.[0]["H200 us"] - .[1].floor.H200.data_sheet_us | fabs) <= 1e-3 * .[0]["H200 us"])' tiny; jq '.lines | all(.bytes > 0)' roofline.json
  true
  true
  $ bench --suite roofline --tiny --filter matmul --json /no/such/file > log
  bench: --json: cannot write /no/such/file
  [1]

  $ bench --suite roofline --tiny --filter no_such_kernel
  bench: no kernel of the suite roofline matches. --list prints them all
  [1]
  $ bench --suite roofline --tiny --list --filter '/adam_step' | sed -n 1p
  vit_b16_b256_train_bf16/adam_step	f32[100384] f32[100384] f32[100384] bf16[100384] f32[100384] f32[3]
