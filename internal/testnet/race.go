//go:build race

package testnet

// Race says whether the race detector is on. Calls need more time and stack then, for
// which tests may have to allow.
const Race = true
