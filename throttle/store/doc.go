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
// [Ledger] holds these rules as pure functions of state, operation and time. A
// store that can lock a key keeps a Ledger for it and calls [Book],
// [Ledger.AfterRefund] and [Ledger.AfterNews]; [NewMemory] shows how. A store that
// cannot, like a script in Redis, says the same in its own language. Package
// storetest compares either with the Ledger.
package store
