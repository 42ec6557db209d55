#!/usr/bin/env bash
# What the action runs: the gate, the job's summary, and the comment that an earlier push left, written anew. Inputs come by name
# from the environment and are passed on as single words: nothing in them is a command.
set -uo pipefail

arguments=(gate --baseline "$BASELINE" --lake "$LAKE" --format markdown)
[ -n "$CANDIDATE" ] && arguments+=(--candidate "$CANDIDATE")
[ -n "$BENCHMARK" ] && arguments+=(--benchmark "$BENCHMARK")
[ -n "$ALPHA" ] && arguments+=(--alpha "$ALPHA")
[ -n "$JUDGE" ] && arguments+=(--judge "$JUDGE")
[ "$ALLOW_UNKNOWN" = true ] && arguments+=(--allow-unknown)
[ -n "$PUBLICATION" ] && arguments+=(-- "$PUBLICATION")

comment="$RUNNER_TEMP/salon-gate.md"
salon "${arguments[@]}" > "$comment"
ruling=$?
[ "$ruling" -gt 1 ] && exit "$ruling" # nothing was ruled: the error stands in the log
read -r mark < "$comment"
[[ "$mark" == "<!-- salon gate"* ]] || { echo "::error::salon wrote no ruling"; exit 70; }

cat "$comment" >> "$GITHUB_STEP_SUMMARY"
number=$(python3 -c 'import json, os; print(json.load(open(os.environ["GITHUB_EVENT_PATH"])).get("pull_request", {}).get("number", ""))')
if [ -n "$GH_TOKEN" ] && [ -n "$number" ]; then
  comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
  if pages=$(gh api "$comments" --paginate --slurp); then
    found=$(python3 -c '
import json, sys
mine = [one["id"] for page in json.load(sys.stdin) for one in page if one["body"].startswith(sys.argv[1])]
print(mine[0] if mine else "")' "$mark" <<< "$pages")
    if [ -n "$found" ]; then
      gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found" -F "body=@$comment" > /dev/null
    else
      gh api --method POST "$comments" -F "body=@$comment" > /dev/null
    fi
  else
    false # which comments there are is not known: another one would stand beside an earlier push's
  fi || echo "::warning::the comment could not be written; the ruling stands in the job's summary"
fi
exit "$ruling"
