//go:build race

package testnet

// Race is whether the race detector watches: its calls need more time and more stack.
const Race = true
