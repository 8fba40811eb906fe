package cooldown

import "time"

const (
	// MostBelieved bounds a hint, however well it is supported; then one request asks
	// again. The longest windows of real APIs are days that end at some midnight, and an
	// hour is for where that is.
	MostBelieved = 25 * time.Hour

	// MostSlack is by how much hints of real servers were seen to be too short. It is also
	// by how much two that name one instant may differ.
	MostSlack = 2 * time.Second
)

// A Hint is how long a refused request was told to stay away. The zero Hint is none.
type Hint struct {
	Wait      time.Duration
	Known     bool
	Supported bool   // something else that the server said agrees
	Source    string // the header it comes from
}

// Believed is for how long h is obeyed, if nothing unsupported is for longer than most,
// and whether that is less than it says.
func (h Hint) Believed(most time.Duration) (wait time.Duration, capped bool) {
	if h.Supported {
		most = max(most, MostBelieved)
	}
	return max(0, min(h.Wait, most)), h.Wait > most
}
