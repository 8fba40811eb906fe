#!/usr/bin/env bash
# govulncheck in every module.
source "$(dirname "$0")/lib.sh"

for m in $(modules); do
	step "govulncheck: $m"
	(cd "$m" && GOWORK=off go run "$GOVULNCHECK" ./...)
done
