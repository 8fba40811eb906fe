// Package store is the protocol by which processes share budgets: what they ask
// of a [Store], what it answers, and the rules by which it decides.
//
// Programs that use a store need nothing of this package: they pass one of the
// modules redisstore and filestore to throttle.Config. It is for those who write
// a store, and for package throttle, which asks it.
//
// # Words
//
// A key names what is shared: a host, a route of it, a pool. A key has limits.
// A limit counts units in use, its level, in one of three ways: see [LimitKind].
// A process sends a [Booking] for one request or a batch. The store charges the
// batch, or its first request, or nothing, and answers with a [Standing] for
// each key. What was not sent is given back by a [Refund]. What the server
// said is passed on as [News].
//
// # Rules
//
// The store's clock is the only one: all durations that are sent are relative.
// A booking charges all of its keys or none. A refusal charges nothing. An error
// means that nothing is known, and nobody sends on it. A refund never gives back
// more than was charged.
//
// Processes remember what they were last told ([Seen]) and send it along, so
// that a store which lost its state, or fell back to an older one, takes up where
// it was: a process's memory can only raise a level. Such a state is charged a
// second later, when all who have work to do have said what they remember. A
// store that can tell a restart, or another server, by itself sets [Ledger.Era],
// so that it is healed as well when newcomers come first.
//
// # Writing a store
//
// [Ledger] holds these rules as pure functions of state, operation and time. A
// store that can lock a key keeps a Ledger for it and calls [Book],
// [Ledger.AfterRefund] and [Ledger.AfterNews]; [NewMemory] shows how. A store that
// cannot, like a script in Redis, says the same in its own language. Package
// storetest compares either with the Ledger. What those asked who wrote one:
//
//   - When is the clock read? Once for each operation, after all of its keys are
//     locked. A time that was read before may be older than what somebody else
//     has written meanwhile, which looks as though the clock had stepped back.
//     In SQL it is clock_timestamp() and not now(), which is when the
//     transaction began.
//   - Whose clock? One clock for each key: the server's, or that of the one
//     machine whose processes share the store.
//   - In which order are keys locked? In any that is the same for all, as sorted,
//     so that no two bookings wait for each other. A key is named once in a
//     booking.
//   - May a lost compare-and-swap be tried again? Yes, with the state and the time
//     read anew: nothing was written. What may have been written, as when the
//     connection breaks during a commit, may not: return the error.
//   - What is kept of a key that is at rest? Nothing: no row is the zero Ledger. A
//     Ledger whose Gen is 0 after an operation need not be written.
//   - Who deletes idle rows? The store, whenever it likes from Ledger.Expires on:
//     with each write a few, or by the database's own expiry. Nobody else
//     will, and a key is never deleted earlier.
//   - Is the JSON of a Ledger stable? Fields may be added, and those that are there
//     keep their meaning, within a major version. Names are any bytes, of which
//     JSON keeps only valid UTF-8: keep keys as bytes, and make the names in
//     bookings, refunds and news valid in one way. Where others may write,
//     Ledger.Validate says what cannot be true.
//   - Must it survive a crash? No: what is lost is healed from what processes
//     remember. Waiting for the disk buys what was spent last by processes that
//     died in the same crash.
//   - How is it tested? Give it a function for the clock, and storetest one that
//     stands still between its steps.
package store
