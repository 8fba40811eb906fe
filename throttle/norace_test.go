//go:build !race

package throttle

const racing = false
