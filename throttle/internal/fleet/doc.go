// Package fleet books room in a store that several processes share.
//
// A process asks its own budgets first. What they grant it then books here, so
// that all processes together stay within the limits. Waiters of one process
// that draw on the same keys share a queue and ride together on one call. While
// there is room, one call books a whole batch. When a key is short, a process
// books one request at a time, so that processes take turns.
//
// # Words
//
// A [Key] is what is drawn on, a [Grant] what was booked. A lease is room booked
// ahead of demand. A place is where the store keeps the units of a grant: units
// that reached the server late are moved there. While a store is gone, the
// process goes on alone, with its share of every rate. A [Tally] counts what all
// processes draw of a limit that nobody configured. Requests are in flight, or
// under way, from their booking until Done. A [Window] is how many may be, if that is
// learned.
//
// # What holds
//
// A request waits for a call no longer than Deadline. An answer that comes later
// is given back, and counts as none when the store is judged. What an error
// leaves unknown is never sent on. A refund is sent at most once. Every call runs on a
// goroutine that ends with its context, or on that of the one request that waits for
// it, and Close waits for them all. The lock of
// a queue may be held when the Fleet's or the guard's is taken, never the other
// way round, and no lock is held during a call.
//
// The package returns facts. It makes no public errors and counts nothing; it
// knows neither waiting lists nor HTTP.
package fleet
