# awk -f loss.awk METRICS.jsonl: draws the losses of a run as bars in plain text, at most 16 of the
# training loss (#) and every validation loss (o). Exit code 1 where the loss did not fall by 0.5.

function number(key,    text) {
  text = $0
  sub(".*\"" key "\":", "", text)
  sub(/[,}].*/, "", text)
  return text + 0
}

function draw(step, loss, mark, fill,    bar) {
  bar = sprintf("%*s", int(10 * loss + 0.5), mark)
  gsub(/ /, fill, bar)
  printf "%7d %7.3f %s\n", step, loss, bar
}

/"kind":"train"/ { steps[++n] = number("step"); train[n] = number("loss") }
/"kind":"validation"/ { validation[number("step")] = number("loss") }

END {
  if (n < 2) {
    print "fewer than two steps in " FILENAME
    exit 1
  }
  num_rows = n < 16 ? n : 16
  print "   step    loss"
  last = 0  # the step up to which all is drawn
  for (row = 0; row < num_rows; row++) {
    i = 1 + int(row * (n - 1) / (num_rows - 1) + 0.5)
    while (++last < steps[i])
      if (last in validation) draw(last, validation[last], "o", " ")
    draw(steps[i], train[i], "#", "#")
    if (last in validation) draw(last, validation[last], "o", " ")
  }
  printf "\nThe loss fell from %.3f to %.3f in %d steps.\n", train[1], train[n], steps[n]
  exit !(train[n] < train[1] - 0.5)
}
