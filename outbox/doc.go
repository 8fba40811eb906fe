// Package outbox keeps requests that must not be lost in a file until they are
// delivered: webhooks, orders, audit records. It makes one of two promises. With
// [Config.KeepFirst], and for what is given to [Transport.Enqueue], a request is
// on the disk before anything of it is sent, the caller gets an answer at once,
// 202 or an id, and whatever happens to the process after that loses nothing.
// Without KeepFirst a request is sent first, and the caller gets the server's
// answer. Only a request that fails is written to the disk and answered with
// 202. While the base still tries, the request is lost if the process dies.
//
// Most programs need [New], [Config], [Transport.Run] and, for requests that must be
// on the disk first, [Transport.Enqueue]. The other methods show what is kept and let
// people decide about what cannot be delivered; go doc -all of this package is long.
//
// Kept requests are sent at least once, not exactly once: a request whose answer
// was lost is sent again, and after a kill up to 16 requests of each queue are
// sent again although they were answered. A request has the same idempotency key
// each time it is sent, by which the server can recognise it.
//
// It is an [http.RoundTripper] to stand around weir's Transport:
//
//	transport, err := weir.New(nil, weir.Config{...})
//	box, err := outbox.New(transport, outbox.Config{
//		Path:      "/var/lib/shop/outbox.db",
//		Patterns:  []string{"POST api.example.com/v1/events"},
//		KeepFirst: true,
//		Prepare: func(r *http.Request) error {
//			r.Header.Set("Authorization", "Bearer "+token())
//			return nil
//		},
//	})
//	client := &http.Client{Transport: box}
//	go func() { log.Print(box.Run(ctx, 30*time.Second)) }() // it ends if the file fails
//
// The 202 has the header Outbox-Id, and a small JSON body with the same id. The
// request stays in the file until a server has answered it or
// [Transport.Discard] removes it. Requests that no pattern names pass untouched.
//
// # Order
//
// Entries stand in queues: one for each host, or for each key that [Config.Key]
// makes of a request. Those of one queue are sent one after the other, in the
// order in which they were kept. They do not wait for entries of other queues. In
// both modes, if a request's queue holds anything, the request is put at its end
// and not sent at once, so that no request overtakes one that was answered before
// it. So the program has to call [Transport.Run], or [Transport.Drain] now and
// then. Otherwise a queue grows from its first failure on. Requests that are under
// way at the same time have no order.
//
// # What cannot be kept
//
// A request does not fit if its body is longer than Config.MaxBody, if it has
// trailers or an Upgrade header, or is a CONNECT; and there may be no room, or
// the disk may be full. With KeepFirst, and from Enqueue, that is an error
// ([ErrUnfit], [ErrFull], or what is wrong with the file), and nothing is sent.
// Without KeepFirst the caller gets what the base returned, as if there were no
// outbox, but for requests that fit and would overtake others: for these it is
// the error, too.
//
// # What failed means
//
// This is about requests that are sent first. An error of the base counts as
// failed, also a refusal by weir. There are two exceptions. If the caller cancels
// the request, it is not kept, because the caller no longer wants it sent; if the
// caller's deadline passes, it is kept. If a request costs more than its budget can
// ever hold, it is not kept either. An answer counts as failed only if
// Config.FailedStatus names its status. That response is then closed, and the
// caller gets the 202 instead.
//
// # What is kept
//
// The method, the URL, the header and a body of up to Config.MaxBody are kept.
// Credentials are not: the headers listed at Config.Secrets and the URL's userinfo
// do not reach the disk unless Config.KeepCredentials says so. Config.Prepare puts
// them back when the entry is sent. It is better if a RoundTripper inside the base
// adds them, because then the outbox never sees them. The query is kept as it is,
// with any secrets in it, so do not name such requests.
//
// With KeepFirst, and by Enqueue, the body is read to its end before anything is
// sent, for as long as the caller's context lasts. If a request is sent first and
// has a GetBody, its body is read again once the request has failed. Any other
// body is remembered as it is sent; nothing waits for that, and nothing is read
// before the server takes it. A body that turns out longer than MaxBody is sent
// and not kept. What a failed request left unread of its body is read to the end,
// for at most five seconds.
//
// # At least once
//
// A request may be carried out twice. If it failed, the server may have carried it
// out all the same; so may a server whose request was ended to make room for
// others (see [Config.Concurrency]). If the process dies after a server's answer
// and before it has noted it, the entry is sent again: up to 16 entries of each
// queue, in their order. So every request that is kept, or that a pattern names,
// has an idempotency key before it is first sent: the caller's, or 128 random
// bits. The same key is sent in each attempt, and a server that honours it carries
// the request out once. (The key also allows weir's retry, and net/http, to repeat
// a POST. So name a pattern only if its server honours keys, or if it does no harm
// to carry a request out twice.)
//
// # Draining
//
// [Transport.Run] sends what is kept as soon as it can be sent. [Transport.Drain]
// sends once what is pending now. Both send from up to Config.Concurrency queues
// at the same time, one entry of each, through the base and so under its budgets,
// pauses, retries and circuits. A server that is down holds up its own queue and
// no other; [Config.Concurrency] says what happens if many hang. [Transport.Drain]
// says which answers deliver an entry, leave it for later, or set it aside as
// dead.
//
// Dead entries are set aside, so that they do not block those behind them.
// [Transport.DeadLetters] lists them with a reason. They count towards the bounds
// until [Transport.Requeue] or [Transport.Discard] is called on them, so nothing
// that was promised is dropped silently. An entry that only ever fails with an
// error is not set aside before MaxAge, because an outage looks the same.
// Config.Verdict can set it aside, and can decide about every answer, also by what
// is in it.
//
// [Transport.Queues] says how each queue does, as do the page of package inspect
// and the metrics of otelweir; Config.OnStuck and OnDrained are told when a queue
// cannot be delivered and when it has been. Run tries a stuck queue again at
// intervals and after [Transport.Wake], which is made to be called by a hook,
// say when a circuit closes:
//
//	var box *outbox.Transport
//	breaker.Config{OnStateChange: func(c breaker.Change) {
//		if c.To == breaker.Closed {
//			box.Wake()
//		}
//	}}
package outbox
