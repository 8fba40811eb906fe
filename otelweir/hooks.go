package otelweir

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

func (r *Reporter) onWait(w throttle.Wait) {
	if !w.Over {
		r.event(w.Ctx, "weir.wait", attribute.String("weir.why", w.Why), attribute.Float64("weir.expect", w.Expect.Seconds()), attribute.Int("weir.ahead", w.Ahead))
		return
	}
	r.wait.Record(background(w.Ctx), w.Waited.Seconds(), r.with(hostOf(w.Key), attribute.Bool("weir.granted", w.Granted)))
}

func (r *Reporter) onLearn(l throttle.Learned) {
	r.learned.Add(background(l.Ctx), 1, r.with(hostOf(l.Key)))
	r.event(l.Ctx, "weir.learned", attribute.String("weir.why", l.Why))
}

func (r *Reporter) onAttempt(a retry.Attempt) {
	ctx := background(a.Ctx)
	attributes := []attribute.KeyValue{
		attribute.String("weir.outcome", a.Outcome.String()),
		attribute.String("weir.then", a.Reason.String()),
	}
	if a.Status != 0 {
		attributes = append(attributes, attribute.Int("http.response.status_code", a.Status))
	}
	r.attempts.Add(ctx, 1, r.with(a.Host, attributes...))
	if a.Number > 1 {
		r.resends.Add(ctx, 1, r.with(a.Host, attributes[0]))
	}
	if a.Took > 0 {
		r.duration.Record(ctx, a.Took.Seconds(), r.with(a.Host, conventional(a)...))
	}
	if a.Number > 1 || a.Reason != retry.Final {
		r.event(a.Ctx, "weir.attempt", append(attributes,
			attribute.Int("http.request.resend_count", a.Number-1), attribute.Float64("weir.delay", a.Delay.Seconds()))...)
	}
}

// conventional are the attributes that the HTTP client conventions want of a
// request's duration, but for those of its host.
func conventional(a retry.Attempt) []attribute.KeyValue {
	method := a.Method
	switch method {
	case "":
		method = http.MethodGet
	case http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions,
		http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace:
	default:
		method = "_OTHER"
	}
	all := []attribute.KeyValue{attribute.String("http.request.method", method)}
	if a.Status != 0 {
		all = append(all, attribute.Int("http.response.status_code", a.Status))
	}
	switch {
	case a.Status == 0:
		all = append(all, attribute.String("error.type", errorType(a)))
	case a.Status >= 400:
		all = append(all, attribute.String("error.type", strconv.Itoa(a.Status)))
	}
	return all
}

// errorType is how an attempt without an answer ended. Of one whose caller left
// it says whether that was the deadline or a cancellation.
func errorType(a retry.Attempt) string {
	switch {
	case a.Outcome != retry.CallerDone:
		return a.Outcome.String()
	case errors.Is(a.Err, context.DeadlineExceeded), errors.Is(background(a.Ctx).Err(), context.DeadlineExceeded):
		return "deadline exceeded"
	}
	return "canceled"
}

func (r *Reporter) onChange(c breaker.Change) {
	state := attribute.String("weir.circuit.state", c.To.String())
	r.changes.Add(background(c.Ctx), 1, r.with(c.Host, state))
	r.event(c.Ctx, "weir.circuit", state, attribute.String("weir.why", c.Reason))
}

// hostOf is the host of a throttle's key, which names the partition after a "#".
func hostOf(key string) string {
	host, _, _ := strings.Cut(key, "#")
	return host
}

func background(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
