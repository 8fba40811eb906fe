// Package store defines the protocol by which processes share budgets: what they
// ask of a [Store], what it answers, and the rules by which it decides.
//
// Programs that use a store do not need this package. They pass a store of the
// module redisstore or filestore to throttle.Config. It is for authors of stores,
// and for package throttle, which calls them.
//
// # Words
//
// A key names what is shared: a host, a route of a host, or a pool. A key has
// limits. A limit counts the units that are in use, which are its level, in one of
// three ways: see [LimitKind]. A process sends a [Booking] for one request or for a
// batch. The store charges the batch, or its first request, or nothing, and answers
// with a [Standing] for each key. A process gives back the units that it did not
// use by a [Refund], and passes on what the server said as [News].
//
// # Rules
//
// Only the store's clock counts, so all durations that are sent are relative, and an instant is one that the store has told. A
// booking charges all of its keys or none. A refusal charges nothing. If a call
// returns an error, it is not known what was charged, and no request is sent on the
// strength of that call. A refund never gives back more than was charged.
//
// Processes remember what they were last told ([Seen]) and send it with each
// booking. So a store that lost its state, or fell back to an older one, can be
// brought up to date; what a process remembers can only raise a level. Nothing of
// such a key is charged for a second, in which every process that has work to do
// says what it remembers. If a store can tell by itself that it was restarted, or
// that it is another server, it sets [Ledger.Era]. Then its state is also brought up
// to date if processes that remember nothing come first.
//
// # Writing a store
//
// [Ledger] implements these rules as pure functions of state, operation and time. A
// store that can lock a key keeps a Ledger for it and calls [Book],
// [Ledger.AfterRefund] and [Ledger.AfterNews]; [NewMemory] shows how. A store that
// cannot, like a script in Redis, implements the same in its own language. Package
// storetest compares both kinds with the Ledger. Authors of stores asked these
// questions:
//
//   - When is the clock read? Once for each operation, after all of its keys are
//     locked. A time that was read before may be older than what somebody else
//     has written meanwhile, which looks as though the clock had stepped back.
//     In SQL it is clock_timestamp() and not now(), which is when the
//     transaction began.
//   - Whose clock? One clock for each key: the server's, or that of the one
//     machine whose processes share the store.
//   - In which order are keys locked? In one order for all bookings, such as sorted,
//     so that no two bookings wait for each other. A booking names a key only once.
//   - May a lost compare-and-swap be tried again? Yes, with the state and the time
//     read anew, because nothing was written. If something may have been written, as
//     when the connection breaks during a commit, it may not: return the error.
//   - What is kept of a key of which nothing is in use? Nothing: a key without a
//     row has the zero Ledger. A Ledger whose Gen is 0 after an operation need not
//     be written.
//   - Who deletes idle rows? The store, whenever it likes from Ledger.Expires on:
//     with each write a few, or by the database's own expiry. Nobody else
//     will, and a key is never deleted earlier.
//   - Is the JSON of a Ledger stable? Fields may be added, and those that are there
//     keep their meaning, within a major version. Names are any bytes, of which
//     JSON keeps only valid UTF-8: keep keys as bytes, and make the names in
//     bookings, refunds and news valid in one way. Where others may write,
//     Ledger.Validate says what cannot be true.
//   - Must it survive a crash? No: what is lost is restored from what processes
//     remember. If writes wait for the disk, the units are kept as well that were
//     spent last by processes which died in the same crash.
//   - How is it tested? Give it a function for the clock, and storetest one that
//     stands still between its steps.
package store
