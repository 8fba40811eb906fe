// Package cooldown knows for how long nothing is sent after a refusal.
//
// # Words
//
// A refusal is an answer by which a server asked for fewer requests. A [Hint] is what it
// said about when to come back. Without a hint the pause is a guess. A [Cooldown] is the
// pause that refusals began and whatever is known of how such pauses end. Refusals of
// requests that were all sent before the first of them was heard are one burst. When a
// pause is over, one request asks: a [Question] is open, and the others wait for the
// answer. If that is a refusal, it asked in vain. Slack is by how much a server's hints
// have proved too short.
//
// # Promises
//
// Nothing is sent earlier than a server said, as far as its hint is believed: up to
// [Refusal.Most], and up to [MostBelieved] if something else that it said agrees, or if
// a later refusal names the same end. One answer does not corroborate itself. What a
// burst adds is at most a later end: it is one refusal, however many answers tell of it.
// Guesses double each time that one asks in vain, and hints get longer by growing steps,
// so a server that means what it does not say is asked ever more seldom. Guesses stay
// short enough for those who wait to ask again: see [LongestGuess]. Newcomers, who may
// have been refused together with a thousand like them, come back spread over time.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here, and no randomness but what a Refusal
// brings. Who owns a Cooldown or a Question calls one method at a time, with instants
// that do not step back. While a Question is open at most one request asks. Each caller
// whom Ask told to ask calls Done once. A nil Cooldown stands for no refusal: every method
// may be called on it but Refused.
package cooldown
