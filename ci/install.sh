#!/usr/bin/env bash
# Installs the Debian packages that the tests run against, if it may, and
# fetches the modules that they want. It asks before it installs anything. With
# CI=true it installs without a question; where nobody can be asked, nothing.
source "$(dirname "$0")/lib.sh"

# may asks whether to do what $1 says. No answer is no.
may() {
	[ "${CI:-}" != true ] || return 0
	if [ ! -t 0 ]; then
		echo "not done, because nobody can be asked (CI=true does it): $1" >&2
		return 1
	fi
	local answer=
	read -rp "$1? [y/N] " answer || true
	[[ "$answer" == [yY]* ]]
}

need=()
wants() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || need+=("$2"); }
[ -d redisstore ] && wants redis-server redis-server && wants faketime faketime
[ -d interop/nginx ] && wants nginx nginx
[ -d interop/page ] && wants chromium chromium
[ -d examples/proxy ] && wants curl curl

npm_packages() {
	[ -d interop/node ] || return 0
	step "npm packages of interop/node"
	if command -v npm >/dev/null; then
		if [ -d interop/node/node_modules ] && [ "${CI:-}" != true ]; then return; fi
		may "install the npm packages of interop/node into interop/node/node_modules" || return 0
		(cd interop/node && again npm ci --no-audit --no-fund)
	else
		echo "interop/node wants Node 20 or newer with npm" >&2
		[ -z "${CI:-}" ] || exit 1
	fi
}

# packages installs what is needed. What one source of packages has to say
# against an update does not matter if the others have it.
packages() {
	local apt=(apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
	"${apt[@]}" update || true
	"${apt[@]}" install -y --no-install-recommends "${need[@]}" >/dev/null
}

# go_modules fetches what the builds want, each with the workspace and without.
# What still is missing then, they say themselves.
go_modules() {
	step "Go modules"
	local m
	for m in $(modules); do
		(cd "$m" && again go list -deps -test ./... >/dev/null && GOWORK=off again go list -deps -test ./... >/dev/null) || return 0
	done
	again go run "$STATICCHECK" -version || return 0
}

if [ ${#need[@]} -eq 0 ]; then
	:
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && may "install the Debian packages ${need[*]}"; then
	step "installing ${need[*]}"
	export DEBIAN_FRONTEND=noninteractive
	# The servers are started by the tests, on ports of their own.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT # also when something fails
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
	fi
	again packages
else
	echo "the tests want these Debian packages: ${need[*]}" >&2
	echo "install them with: apt-get install ${need[*]}" >&2
	[ -z "${CI:-}" ] || exit 1
fi
npm_packages
go_modules
