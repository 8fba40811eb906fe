package testnet

import "testing"

// Drawn is how many servers or runs a test draws: all, or few with the race detector, with
// which each takes ten times as long and the others would show no other race. The run of
// every test without the detector draws all of them.
func Drawn(all, few int) int {
	if Race {
		return few
	}
	return all
}

// Judge reports a figure over what was drawn (Drawn) that misses its bound. It is an error
// where all were drawn. With the race detector it is only logged, as chance decides about few.
// What must hold in every single run is no such figure: a test reports it itself.
func Judge(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	switch {
	case holds:
	case Race:
		t.Logf("of few: "+format, args...)
	default:
		t.Errorf(format, args...)
	}
}
