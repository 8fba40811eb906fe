// Package outbox keeps the requests that must not be lost: the webhook, the
// order, the audit record that a program sends to a server which happens to be
// down. It is an [http.RoundTripper] to stand around weir's Transport:
//
//	transport, err := weir.New(nil, weir.Config{...})
//	box, err := outbox.New(transport, outbox.Config{
//		Path:     "/var/lib/shop/outbox.db",
//		Patterns: []string{"POST api.example.com/v1/events"},
//		Prepare: func(r *http.Request) error {
//			r.Header.Set("Authorization", "Bearer "+token())
//			return nil
//		},
//	})
//	client := &http.Client{Transport: box}
//	go func() { log.Print(box.Run(ctx, 30*time.Second)) }() // it ends if the file fails
//
// A request that a pattern names and that fails, because the circuit is open,
// the budget used up or the server unreachable, is written to a file and
// answered at once: 202 Accepted, the header Outbox-Id, and a small JSON body
// with the same id. When [Transport.RoundTrip] returns that answer the request
// is on the disk, and stays there until a server has answered it or
// [Transport.Discard] removes it. If it cannot be kept, because the outbox is
// full or its file cannot be written, the caller gets what the base returned,
// as if there were no outbox. Requests that no pattern names pass untouched.
//
// # What failed means
//
// Any error of the base, a refusal by weir included, counts as failed, but not
// the caller's own cancellation: who gave up does not want the request sent.
// A deadline that passed is not giving up. Nor does the refusal of a request
// whose cost exceeds what its budget can ever hold. Answers count as failed only if
// Config.FailedStatus names them; that response is then closed, which is the
// one case in which a response obtained is not the response returned.
//
// # What is kept
//
// Method, URL, header, and a body of up to Config.MaxBody. Credentials are
// not: neither the headers listed at Config.Secrets nor the URL's userinfo
// touch the disk unless Config.KeepCredentials says so. Config.Prepare puts
// them back when the entry is sent. Better still, let a RoundTripper inside
// the base add them, where the outbox never sees them. The query is kept as it
// is, secrets in it included, so do not name such requests.
//
// A body with a GetBody is read again once the request has failed; any other
// is remembered as it streams by, so nothing waits and nothing is read ahead
// of the server. A body that turns out longer than MaxBody goes on streaming
// and is not kept. The part of a body that a failed request left unread is
// read to its end, for at most five seconds. Requests with trailers, with an
// Upgrade header or a CONNECT pass through: they could not be sent again.
//
// # At least once
//
// A request that failed may have been carried out all the same, and a process
// that dies between a server's answer and its own note of it sends the entry
// again. So every request that a pattern names carries an idempotency key from
// before its first sending: the caller's, or 128 random bits. The same key is
// sent each time; a server that honours it carries the request out once. (A
// key also tells weir's retry, and net/http, that they may repeat a POST: name
// a pattern only if its server honours keys, or if twice does no harm.)
//
// The file is a bbolt database of mode 0600. A write is synced before it
// counts; a process killed at any instruction leaves a file that opens and
// holds all it had promised. Concurrent writes share one sync.
//
// # Draining
//
// [Transport.Drain] sends what is pending, one at a time, in the order kept,
// through the base and so under its budgets, retries and circuits. What
// becomes of an entry:
//
//   - a 2xx, or a 303: delivered, and removed;
//   - an error, 401, 407, 408, 409, 421, 425, 429 or 5xx: later. The entry
//     stays first of its host and the host's turn ends, so that order is kept
//     and a server that is down gets one request a turn; an open circuit
//     refuses that one before it is sent. Other hosts go on;
//   - any other answer, which would be the same the next time, and a cost
//     above what its budget can ever hold: dead. Redirects are such answers,
//     but for a 307 or 308 to the same host, which is followed. So is an entry
//     whose later answers were Config.MaxTries (those of them that speak of the
//     entry, not of load or credentials), and one older than Config.MaxAge.
//
// Dead entries are set aside, so that they do not block those behind them.
// They stay in [Transport.List] with a reason and count towards the bounds
// until [Transport.Requeue] or [Transport.Discard] is called on them: nothing
// promised is dropped silently. An entry that only ever fails with an error is
// not set aside by itself, because an outage looks the same; Config.Verdict
// can do it, and decides everything else too, also by what is in the answer.
//
// [Transport.Run] drains at intervals and after [Transport.Wake], which is
// made to be called by a hook, say when a circuit closes:
//
//	var box *outbox.Transport
//	breaker.Config{OnStateChange: func(c breaker.Change) {
//		if c.To == breaker.Closed {
//			box.Wake()
//		}
//	}}
//
// Order holds among kept requests. A request sent while others wait does not
// wait behind them.
package outbox
