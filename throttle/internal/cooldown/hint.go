package cooldown

import (
	"time"
)

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

const (
	// FirstGuess is the pause after a refusal that says nothing and of whose limit nothing
	// is known: long enough for a bucket of 2 a second, and not felt by people.
	FirstGuess = 500 * time.Millisecond

	// MostGuess bounds all guesses. Limits are seldom counted in more than a minute
	// without saying so.
	MostGuess = time.Minute

	// leastGuess is about a round trip: less is no pause.
	leastGuess = 20 * time.Millisecond

	// shortGuess is what a guess doubles up to at once. It is more than ten seconds, so
	// that a ban of ten, which each refusal begins anew, comes to its end. And it is so
	// little that one who is refused by a limit per minute asks again within the default
	// longest wait, 75 s.
	shortGuess = 12 * time.Second

	// guessPart is the part of the time since the first refusal that a longer guess takes
	// at most: so what was over for some time is noticed a fifth later.
	guessPart = 5
)

// Guess is the pause after a refusal without a hint: first, or twice as long for each
// request that asked in vain before, and at most most, if not first itself is longer.
func Guess(first, most time.Duration, inVain int) time.Duration {
	first = max(leastGuess, first)
	for range min(inVain, 20) { // more is more than most
		first = min(2*first, MostGuess, most)
	}
	return first
}

// LongestGuess is the longest that a guess may be when the first of the refusals in a
// row is that long ago.
func LongestGuess(since time.Duration) time.Duration {
	return max(shortGuess, since/guessPart)
}
