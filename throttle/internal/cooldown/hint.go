package cooldown

import (
	"time"
)

const (
	// MostBelieved is the longest hint that is obeyed, even if it is supported; after that
	// one request asks. The longest windows of real APIs are days that end at midnight
	// somewhere; a day with a change of the clock may have 25 hours.
	MostBelieved = 25 * time.Hour

	// MostSlack is the most by which hints of real servers were seen to be too short. Two
	// hints whose ends differ by no more are taken to name the same instant.
	MostSlack = 2 * time.Second
)

// A Hint is how long a refused request was told to stay away. The zero Hint is none.
type Hint struct {
	Wait      time.Duration // from the answer on
	Known     bool          // there is a hint
	Supported bool          // something else that the server says agrees
	Source    string        // the header that it comes from
}

// Believed is for how long h is obeyed, where a hint that is not supported is obeyed for no
// longer than most. capped says that this is less than Wait.
func (h Hint) Believed(most time.Duration) (wait time.Duration, capped bool) {
	if h.Supported {
		most = max(most, MostBelieved)
	}
	return max(0, min(h.Wait, most)), h.Wait > most
}

const (
	// FirstGuess is the pause after a refusal without a hint, if nothing is known of the
	// limit. It is enough for a bucket of 2 a second, and people hardly notice it.
	FirstGuess = 500 * time.Millisecond

	// MostGuess bounds guesses that grow. Limits whose windows are longer than a minute are
	// seldom without hints.
	MostGuess = time.Minute

	// leastGuess is about a round trip. A shorter pause would not lower the rate.
	leastGuess = 20 * time.Millisecond

	// shortGuess is up to which length a guess may double whatever time has passed. It is
	// more than ten seconds, so that it outlasts a ban of ten seconds that each refusal
	// begins anew. And it is short enough that a request which a limit per minute refuses
	// is tried again within the default MaxWait, 75 s.
	shortGuess = 12 * time.Second

	// guessPart says that a longer guess is at most a fifth of the time since the first
	// refusal. So the end of a long refusal is noticed late by a fifth of its length at most.
	guessPart = 5
)

// Guess is the pause after a refusal without a hint: first, doubled for each request that
// asked in vain before. If it was doubled it is at most most and MostGuess.
func Guess(first, most time.Duration, inVain int) time.Duration {
	first = max(leastGuess, first)
	for range min(inVain, 20) { // 20 doublings of leastGuess are far above MostGuess
		first = min(2*first, MostGuess, most)
	}
	return first
}

// LongestGuess is the longest guess that is allowed if the first of the refusals in a row is
// since ago.
func LongestGuess(since time.Duration) time.Duration {
	return max(shortGuess, since/guessPart)
}
