// Package cooldown knows for how long nothing is sent after a refusal.
//
// # Words
//
// A refusal is an answer by which a server asks for fewer requests. A [Hint] is what it
// says about when to come back. Without a hint the length of the pause is a guess. A
// [Cooldown] is the pause that refusals began, and what is known of how such pauses end.
// Refusals of requests that were all sent before the first refusal was heard are one burst.
// When a pause is over, one request asks whether that is so, and the others wait for its
// answer: until then a [Question] is open. If that request is refused, it asked in vain.
// Slack is by how much the server's hints have proved too short.
//
// # Promises
//
// Nothing is sent earlier than a server said, as far as its hint is believed. It is believed
// up to [Refusal.Most]; or up to [MostBelieved], if something else that the server says
// agrees, or if a later refusal, not of the same burst, names the same end. A burst counts as
// one refusal, however many answers it has: they can only make the pause end later. Each time
// that a request asks in vain, the guess doubles, or a longer time is added to the hint. So a
// server that goes on refusing is asked more and more seldom. But guesses, and what is added,
// stay so short that requests which wait can ask again: see [LongestGuess]. New clients may
// have been refused together with a thousand others, so their pauses differ at random.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here, and no randomness except
// [Refusal.Spread]. The owner of a Cooldown or a Question calls one method at a time, with
// instants that do not step back. While a Question is open, one request asks at a time; only
// if it hangs another one does. Each caller for which Ask or Start returned true calls Done
// once. A nil Cooldown stands for no refusal: At, Opens, Start, Done, Sure, Until, Over,
// Served and Lift may be called on it.
package cooldown
