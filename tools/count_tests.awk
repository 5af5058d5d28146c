# Counts single test cases of one `bazel test` from its build event file (--build_event_json_file), and the
# test.xml files that it names. Portable awk (mawk).
#
#   awk -v bazel_status=STATUS -f count_tests.awk EVENTS
#
# Prints a line for each failed case or target, then "PASSED FAILED SKIPPED TARGETS".
#   * A case of a test.xml passed, failed, was skipped (GTEST_SKIP), or was not run (disabled or filtered out;
#     not counted).
#   * A test target that this system lacks something for (target_compatible_with), such as nvcc, was skipped.
#   * A test target that was not built, crashed, or timed out without a failed case is one failure.
#   * So is a failed Bazel run that named no culprit, such as a BUILD file with an error.

function field(line, name,    value) {
  if (!match(line, "\"" name "\":\"[^\"]*\"")) return ""
  value = substr(line, RSTART, RLENGTH)
  sub("^\"" name "\":\"", "", value)
  sub("\"$", "", value)
  return value
}

function attribute(tag, name,    value) {
  if (!match(tag, "[ \t]" name "=\"[^\"]*\"")) return ""
  value = substr(tag, RSTART, RLENGTH)
  sub("^[ \t]" name "=\"", "", value)
  sub("\"$", "", value)
  return value
}

function percent_decoded(text,    result, code) {
  result = ""
  while (match(text, "%[0-9A-Fa-f][0-9A-Fa-f]")) {
    code = index("0123456789abcdef", tolower(substr(text, RSTART + 1, 1))) * 16
    code += index("0123456789abcdef", tolower(substr(text, RSTART + 2, 1))) - 17
    result = result substr(text, 1, RSTART - 1) sprintf("%c", code)
    text = substr(text, RSTART + 3)
  }
  return result text
}

# Ends the case that began last.
function end_case() {
  if (case_name == "") return
  if (case_failed) {
    failed++
    failed_here++
    print "FAILED: " case_label " " case_name
  } else if (case_skipped) {
    skipped++
  } else {
    passed++
  }
  case_name = ""
}

function count_xml(label, path,    line, rest, tag) {
  failed_here = 0
  case_label = label
  case_name = ""
  while ((getline line < path) > 0) {
    rest = line
    # A tag ends on the line it begins on: GoogleTest and Bazel both write it so.
    while (match(rest, "<(testcase|failure|error|skipped)[ />][^>]*>?")) {
      tag = substr(rest, RSTART, RLENGTH)
      rest = substr(rest, RSTART + RLENGTH)
      if (tag ~ /^<testcase/) {
        end_case()
        if (attribute(tag, "status") == "notrun") continue
        case_name = attribute(tag, "classname") "." attribute(tag, "name")
        sub(/^\./, "", case_name)  # Bazel's own test.xml of a crashed test has no class.
        case_failed = 0
        case_skipped = attribute(tag, "result") == "skipped"
      } else if (tag ~ /^<skipped/) {
        case_skipped = 1
      } else {
        case_failed = 1
      }
    }
  }
  close(path)
  end_case()
  return failed_here
}

/^\{"id":\{"targetConfigured":/ && /"testSize":/ {
  label = field($0, "label")
  if (!(label in known)) order[++targets] = label
  known[label] = 1
}

# The last attempt of each run and shard counts.
/^\{"id":\{"testResult":/ {
  label = field($0, "label")
  key = label
  if (match($0, "\"run\":[0-9]+")) key = key " " substr($0, RSTART, RLENGTH)
  if (match($0, "\"shard\":[0-9]+")) key = key " " substr($0, RSTART, RLENGTH)
  xml[key] = ""
  if (match($0, "\"name\":\"test\\.xml\",\"uri\":\"file://[^\"]*\"")) {
    path = substr($0, RSTART, RLENGTH)
    sub("^.*\"uri\":\"file://", "", path)
    sub("\"$", "", path)
    xml[key] = percent_decoded(path)
  }
  if (!(key in key_seen)) keys[label] = keys[label] (keys[label] == "" ? "" : "\n") key
  key_seen[key] = 1
}

/^\{"id":\{"targetCompleted":/ && /"aborted":\{"reason":"SKIPPED"/ { incompatible[field($0, "label")] = 1 }

/^\{"id":\{"testSummary":/ { status[field($0, "label")] = field($0, "overallStatus") }

END {
  passed = failed = skipped = 0
  for (i = 1; i <= targets; i++) {
    label = order[i]
    if (label in incompatible) {
      skipped++
      continue
    }
    failures = 0
    count = split(keys[label], of_label, "\n")
    for (k = 1; k <= count; k++) {
      if (xml[of_label[k]] != "") failures += count_xml(label, xml[of_label[k]])
    }
    outcome = status[label]
    if (outcome != "PASSED" && outcome != "FLAKY" && failures == 0) {
      failed++
      print "FAILED: " label (outcome == "" || outcome == "NO_STATUS" ? " was not built" : " (" outcome ")")
    }
  }
  # Bazel's 4: the targets contain no test.
  if (bazel_status != 0 && bazel_status != 4 && failed == 0) {
    failed++
    print "FAILED: bazel test, with status " bazel_status
  }
  print passed + 0, failed + 0, skipped + 0, targets + 0
}
