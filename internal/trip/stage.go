package trip

// Stage says what an attempt that brought no answer was waiting for when it
// ended, as far as Wire knows.
type Stage uint8

const (
	Answering Stage = iota // the answer; also if nobody knows
	Queued                 // one of the base's connections, which others had: the attempt never began
	Dialling               // a connection to the host
	Sending                // the request body had not been read to its end
	Frozen                 // any of these while this process stood still, so that nobody is to blame
)
