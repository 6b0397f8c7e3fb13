# Curves as a page

  $ . "$WEFT"/tests/weft_watch/runs.sh
  $ ended a 1; ended b 2; sed -i 's/"grad":1/"grad":-1/' a/metrics.jsonl b/metrics.jsonl
  $ weft-watch a b --html page.html
  wrote page.html: 2 runs, 3 charts

The page loads nothing and runs nothing. It has every curve, not only the losses; a log scale only for what is positive.

  $ grep -cE 'http:|https:|//|<script|src=|url\(|@import|<link|onload' page.html
  0
  [1]
  $ count() { grep -oE "$1" page.html | sort | uniq -c; }
  $ count 'prefers-color-scheme: dark|<figure>|<svg class=[a-z]*|a log scale shows what is positive|<th>(lr<th>|model)'
        3 <figure>
        3 <svg class=linear
        2 <svg class=log
        1 <th>lr<th>
        1 a log scale shows what is positive
        2 prefers-color-scheme: dark
  $ grep -o '0.05 <small>best 0.05 at 20' page.html
  0.05 <small>best 0.05 at 20

Gaps break the line.

  $ run gaps 1; sed -i -E 's/("step":(3|10|17),.*"val_loss":)[^,]*/\1NaN/' gaps/metrics.jsonl
  $ weft-watch gaps --metrics val_loss --html page.html > log && grep -o '<path class="line" d="[^"]*"/>' page.html | sed -n 1p | grep -o '[ML]' | sort | uniq -c; grep -ci nan page.html
       13 L
        4 M
  0
  [1]

Of thousands of points few are drawn.

  $ run long 1 20000; weft-watch long --metrics val_loss --html page.html > log && wc -c < page.html | jq '. > 10000 and . < 120000'
  true

Smoothed curves are drawn beside the others.

  $ weft-watch a --metrics val_loss --smooth 0.6 --log --html page.html > log && count 'class="(raw|line)"|id=log checked|\(smooth 0.6\)'
        1 (smooth 0.6)
        2 class="line"
        2 class="raw"
        1 id=log checked

Names are text.

  $ odd=$'<b>&"\'\xff'; mkdir "$odd"; printf '{"step":1,"<script>alert(1)</script>":1,"\\u0001\xef\xbf\xbd":2}\n' > "$odd"/metrics.jsonl
  $ weft-watch "$odd" --html page.html > log && count '<script|<b>&|&lt;b&gt;&amp;&quot;&#39;\\xff|&lt;script&gt;alert\(1\)&lt;/script&gt;' | sed 's/^ *[0-9]* //'
  &lt;b&gt;&amp;&quot;&#39;\xff
  &lt;script&gt;alert(1)&lt;/script&gt;

Twenty runs have colours and dashes.

  $ for i in {0..19}; do ended runs/$i $((i + 1)) 5; done; weft-watch runs --html page.html
  wrote page.html: 20 runs, 3 charts
  $ grep -oE 'svg .run(9|19) .line \{[^}]*\}|#show19:not\(:checked\) ~ main .run19' page.html
  svg .run19 .line { stroke-dasharray: 7 4; }
  #show19:not(:checked) ~ main .run19

A page of runs that have ended is not loaded again.

  $ weft-watch a --follow --html page.html > log && grep -c http-equiv page.html
  0
  [1]
