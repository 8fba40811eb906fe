//go:build !unix

package outbox

const fullEnv = "WEIR_OUTBOX_FULL"

func fullChild(string) {}
