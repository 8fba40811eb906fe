package throttle

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Decision is the answer of [Limiter.Try]. Its first five fields mean what the
// five replies of redis-cell mean.
type Decision struct {
	Allowed    bool
	Limit      int64         // of the rate that has least left: a window's Limit or a Bucket. Remaining never reaches it where Burst is less
	Remaining  int64         // units that could be spent now, after this decision; of a cost of nothing, by the rate that has least left of all
	RetryAfter time.Duration // zero if allowed; else the wait after which the same would be, if nobody else draws. Never when nothing can be said: then the largest Duration
	ResetAfter time.Duration // until everything is there again, if nobody draws

	Unit string        // of Limit and Remaining: "requests", ...; "": nothing limits it
	Per  time.Duration // of the rate that has least left: Limit units in any window of length Per; of a Bucket, the time that fills it
}

// describe fills in what is left, from the account with the least: of those that
// were drawn on, or if there is none, of all.
func (d *Decision) describe(now instant, needs []queue.Need) {
	if !d.least(now, needs, false) && !d.least(now, needs, true) {
		d.Limit, d.Remaining = int64(unknown), int64(unknown)
	}
}

func (d *Decision) least(now instant, needs []queue.Need, all bool) (found bool) {
	for i := range needs {
		a := needs[i].Account
		if a.Label.Unit == "" || a.Label.Rate == nil || needs[i].N == 0 && !all {
			continue
		}
		v := a.Meter.State(now)
		if left := min(v.Units(), v.Limit); !found || left < d.Remaining {
			found = true
			d.rate(a.Label, &v)
		}
		d.ResetAfter = max(d.ResetAfter, v.Full.Until(now))
	}
	return found
}

// rate fills in what is left of the rate that t names.
func (d *Decision) rate(t *queue.Label, v *meter.State) {
	d.Limit, d.Remaining = v.Limit, min(v.Units(), v.Limit)
	d.Unit, d.Per = t.Unit, t.Rate.Window
}

// WriteHeader adds to h, the headers of an answer, what a client should know of
// the decision: RateLimit-Policy and RateLimit in the form of
// draft-ietf-httpapi-ratelimit-headers-10, for the rate that has least left, and
// if it was not allowed Retry-After (RFC 9110, section 10.2.3), in whole seconds
// rounded up. Where nothing is limited, or no wait helps, it leaves them out. The
// status, 429 of one that was not allowed, is the caller's.
func (d Decision) WriteHeader(h http.Header) {
	if d.Unit != "" {
		policy := strconv.Quote(d.Unit)
		unit := ""
		switch d.Unit {
		case requests: // the draft's default
		case "bytes":
			unit = `;qu="content-bytes"`
		default:
			unit = ";qu=" + policy
		}
		h.Add("RateLimit-Policy", policy+";q="+whole(d.Limit)+unit+";w="+seconds(d.Per))
		h.Add("RateLimit", policy+";r="+whole(max(0, d.Remaining))+";t="+seconds(d.ResetAfter))
	}
	if !d.Allowed && d.RetryAfter < unknown {
		h.Set("Retry-After", strconv.FormatInt(max(1, ceilSeconds(d.RetryAfter)), 10))
	}
}

// mostWhole is the largest integer of a structured field (RFC 9651, section 3.3.1).
const mostWhole = 999_999_999_999_999

func whole(n int64) string { return strconv.FormatInt(min(n, mostWhole), 10) }

func seconds(d time.Duration) string { return whole(max(1, ceilSeconds(d))) }

func ceilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
