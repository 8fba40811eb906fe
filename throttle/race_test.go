//go:build race

package throttle

// racing says that the race detector is on, which makes everything about ten
// times as slow.
const racing = true
