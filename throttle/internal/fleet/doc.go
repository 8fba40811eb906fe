// Package fleet books room in a store that several processes share.
//
// A process asks its own budgets first. What they grant is then booked here, so
// that all processes together stay within the limits. Waiters of one process
// that draw on the same keys share a queue, and one call to the store books for several of
// them: a batch. When the limits of a key have little left (the key is short), a process
// books one request at a time, so that processes take turns.
//
// # Words
//
// A [Key] is what requests draw on, a [Grant] is what was booked. A lease is room booked
// ahead of demand. A place is where in the store the units of a grant are counted: the time
// from which they count. Units that reached the server late are moved to a later place. A
// store is gone if it does not answer; then the process goes on alone, with its share of
// every rate. A [Tally] counts what all processes draw of a limit that nobody configured. A
// mark is a tally that tells all processes a number. Requests are in flight, or under way,
// from their booking until Done. A [Window] is a learned limit on how many may be.
//
// # What holds
//
// A request waits for a call no longer than Deadline. If the answer comes later, what it
// booked is given back, and the call counts as failed. If a call failed, no request is sent
// because of what it may have booked. A refund is sent at most once. Every call runs on a
// goroutine that ends with its context, or on that of the only request that waits for
// it, and Close waits for all of them. The lock of
// a queue may be held when the lock of the Fleet or of the guard is taken, never the other
// way round. No lock is held during a call.
//
// The package returns facts. It makes no public errors, counts no statistics, and knows
// nothing of waitlists or of HTTP.
package fleet
