package trip

// Stage says what an attempt without an answer was waiting for when it ended, as far as
// Wire knows.
type Stage uint8

const (
	Answering Stage = iota // the answer; also if that is not known
	Queued                 // a connection that another request used: the attempt never began
	Dialling               // a new connection to the host
	Sending                // the end of its own body, which had not been read to its end
	Frozen                 // any of these, while this process did not run, so that the host is not to blame
)
