# Formats a BUILD file the way buildifier does, as far as lists and white space go; Debian has no buildifier.
#   * no blanks at line ends, no tabs, one empty line at most, none at the end
#   * in lists written one string a line, a comma after the last and, for srcs, hdrs, deps, data, textual_hdrs
#     and visibility, sorted: ":a", then "//b", then "@c". A list with comments keeps its order.

# A key that orders strings as buildifier does.
function sort_key(text,    phase) {
  gsub(/^ *"|",?$/, "", text)
  phase = text ~ /^:/ ? 1 : text ~ /^\/\// ? 2 : text ~ /^@/ ? 3 : 0
  # Bytes below any that occur in names: "a:b" comes before "a/b", both before "a_b".
  gsub(/:/, "\001", text)
  gsub(/\//, "\002", text)
  return phase text
}

function flush_list(    i, j, line) {
  if (sorted) {
    for (i = 2; i <= items; i++) {
      line = item[i]
      for (j = i - 1; j >= 1 && sort_key(item[j]) > sort_key(line); j--) item[j + 1] = item[j]
      item[j + 1] = line
    }
  }
  for (i = 1; i <= items; i++) if (!(sorted && i > 1 && item[i] == item[i - 1])) emit(item[i])
  items = 0
}

function emit(line) {
  if (line == "") {
    empty++
    return
  }
  if (empty && printed) print ""
  empty = 0
  printed = 1
  print line
}

{
  gsub(/\t/, "    ")
  sub(/[ \r]+$/, "")
}

in_list && /^ *"[^"]*",?$/ {
  if ($0 !~ /,$/) $0 = $0 ","
  item[++items] = $0
  next
}

in_list {
  # Anything but a string: sort only when the list ends here.
  if ($0 !~ /^ *\]/) sorted = 0
  flush_list()
  in_list = $0 !~ /^ *\]/
  emit($0)
  next
}

/^ *[a-z_]+ = \[$/ {
  emit($0)
  in_list = 1
  sorted = $1 ~ /^(srcs|hdrs|deps|data|textual_hdrs|visibility)$/
  items = 0
  next
}

{ emit($0) }

END { if (in_list) flush_list() }
