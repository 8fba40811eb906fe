# What the scripts in this folder share.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.8.0

# modules prints the folder of every module, the root first.
modules() { git ls-files 'go.mod' '**/go.mod' | xargs -n1 dirname | sort; }

# again runs a command that needs the network up to four times.
again() {
	local pause
	for pause in 3 10 30; do
		"$@" && return
		echo "failed: $*; once more in $pause s" >&2
		sleep "$pause"
	done
	"$@"
}

step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
