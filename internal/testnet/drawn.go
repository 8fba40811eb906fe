package testnet

// Drawn is how many servers or runs a test draws: all, or few with the race detector, with
// which each takes ten times as long and the others would show no other race. The run of
// every test without the detector draws all of them.
func Drawn(all, few int) int {
	if Race {
		return few
	}
	return all
}
