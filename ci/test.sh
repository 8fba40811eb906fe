#!/usr/bin/env bash
# Every module's tests with the race detector, the root module's first; then each
# is built and tested without the workspace; the linters come last. With CI=true
# nothing may be missing.
source "$(dirname "$0")/lib.sh"

test_module() {
	step "test: $1"
	(cd "$1" && go test -race -timeout 40m ./...)
}

cat <<'END'
Tests every module with the race detector, the root module first: some 15 minutes
for that and 40 for all on 2 idle cores. Other modules are tested against Redis,
nginx, Chromium, curl and Node: Debian packages and npm packages (interop/node) that
are missing are named before they are installed. make quick tests the root
module alone, in some six minutes of processor time, and installs nothing.
END
again go list -deps -test ./... >/dev/null # what the root module needs
test_module .
ci/install.sh
for m in $(modules); do
	[ "$m" = . ] || test_module "$m"
done
step "a million keys"
WEIR_MILLION=1 go test -run '^TestMillion' -timeout 10m ./throttle
for m in $(modules); do
	step "without the workspace: $m"
	(cd "$m" && GOWORK=off go build ./... && GOWORK=off go test -short -timeout 20m ./...)
done
ci/lint.sh
