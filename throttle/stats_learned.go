package throttle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/words"
)

// LearnedKind is what a LearnedLimit is, in words.
type LearnedKind string

// The kinds there are.
const (
	LearnedPause       LearnedKind = "pause"     // nothing is let through for a while
	LearnedRate        LearnedKind = "rate"      // units per time that the host was found to bear
	LearnedQuota       LearnedKind = "quota"     // units that the host said are left
	LearnedConcurrency LearnedKind = "in flight" // requests at a time
)

// LearnedLimit is a limit that a host stated or showed, taken apart, so that
// nobody has to read the words. Limits of parts of a kind of request that are alike are one
// LearnedLimit: "for each of 32 URLs of GET /x". Its Until and Wait are the longest of theirs.
type LearnedLimit struct {
	Kind   LearnedKind
	Name   string        // what the host calls it; "": nothing
	Unit   string        // "requests", "tokens"; "" of a pause
	Route  string        // the only kind of requests that it is known to bind: "GET /search", or a pattern of a budget; "": not one only. If it binds a part of that, as one URL, Why says so
	Source string        // where it comes from, in words: "said by RateLimit", "found by its refusals"; "": an assumption
	Limit  float64       // units at once, or per Per; 0: not known, or a pause
	Per    time.Duration // in which Limit counts; 0: not known, or no matter
	Left   float64       // units that may be spent now, never below 0; -1: not known
	Until  time.Time     // when a pause ends or all of a quota is back, on this process's clock; zero: not known
	Wait   time.Duration // for how much longer one request has to wait because of it; zero: not at all, or not known
	Why    string        // all of this in words; Source stands in it
}

// holding is something learned that lets no request through now.
type holding struct {
	cause
	by    *learner
	limit LearnedLimit
}

// learnedLimits is what was learned by the requests of r, and what of it holds
// them up. The lock is held.
func (r *record) learnedLimits(now instant) (all []LearnedLimit, held []holding) {
	r.learned.all(func(l *learner) {
		var parts []partLimits
		l.restrictions(now, func(c cause, d time.Duration) {
			x := c.limit(now, l)
			if d != unknown {
				x.Wait = d
			}
			if k := c.part(); k != nil {
				parts = addPart(parts, k, x, c.words(now, l.terms.zero))
			} else {
				all = append(all, x)
			}
			if d > 0 {
				held = append(held, holding{c, l, x})
			}
		})
		for i := range parts {
			all = append(all, parts[i].limit())
		}
	})
	slices.SortFunc(all, func(a, b LearnedLimit) int { return cmp.Compare(a.Why, b.Why) })
	return all, held
}

// limit is c without words, but for the last.
func (c cause) limit(now instant, l *learner) LearnedLimit {
	x := LearnedLimit{Name: c.name(), Left: -1, Why: c.in(now, l.terms.zero), Route: c.alone()}
	switch c.what {
	case causeCooldown:
		x.Kind, x.Source = LearnedPause, c.pauser().cooldown.State().Said()
		if until := c.pauser().cooldown.Until(); until > now {
			x.Until = onWall(l.terms.zero, until.Time())
		}
	case causeRate:
		x.Kind, x.Unit, x.Source = LearnedRate, requests, "found by its refusals"
		if f, ok := c.found.evidence.found(); ok {
			x.Limit, x.Per = figure(f.Units), f.Per
		} else if n := c.found.evidence.AtOnce(); n > 0 {
			x.Kind, x.Limit = LearnedConcurrency, figure(n)
		}
	case causeQuota:
		c.quota.limit(now, &x)
		if endpoints := c.quota.endpoints; len(endpoints) == 1 && len(l.endpoints) > 1 {
			x.Route = endpoints[0].key.String()
		}
	case causeFlight:
		n, own := c.atOnce()
		if x.Kind, x.Unit, x.Limit = LearnedConcurrency, requests, float64(n); own {
			x.Route, x.Source = c.endpoint.key.String(), "shown by its answers"
		}
	}
	return x
}

// limit fills in what q is.
func (q *quota) limit(now instant, x *LearnedLimit) {
	x.Kind, x.Unit, x.Source = LearnedQuota, unitName(q.ID.Unit), "said by "+words.Field(q.Source)
	f := q.Facts(now)
	x.Limit, x.Per = figure(f.Size.Value), f.Window
	if f.Asking {
		x.Source = "after the reset " + x.Source
		return
	}
	x.Left = figure(f.Level)
	if f.Reset.Known {
		x.Until = onWall(q.terms.zero, f.Reset.Value.Time())
	}
}

// figure bounds a number that a server said: it is finite and not negative.
func figure(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, math.MaxInt64)
}

// onWall is t, which counts from our zero time, on the wall's clock.
func onWall(zero, t time.Time) time.Time { return zero.Round(0).Add(t.Sub(time.Time{})) }

// partLimits are limits of parts of one kind of request that are told as one, as a reader learns nothing
// from one line for each: all their pauses, or limits of one size.
type partLimits struct {
	kind   *endpoint
	parts  int
	shown  LearnedLimit // of the one that has to wait longest
	words  string       // of shown, without for whom it is
	differ bool         // words of others
}

// addPart adds x, which is for a part of k alone, to the limits of parts like it. words are those of x,
// without for whom it is.
func addPart(all []partLimits, k *endpoint, x LearnedLimit, words string) []partLimits {
	for i := range all {
		p := &all[i]
		if p.kind != k || p.shown.Kind != x.Kind || p.shown.Limit != x.Limit || p.shown.Per != x.Per {
			continue
		}
		p.parts++
		p.differ = p.differ || p.words != words
		if cmp.Or(x.Until.Compare(p.shown.Until), cmp.Compare(x.Wait, p.shown.Wait)) > 0 {
			p.shown, p.words = x, words
		}
		return all
	}
	return append(all, partLimits{kind: k, parts: 1, shown: x, words: words})
}

// limit is p as it is shown.
func (p *partLimits) limit() LearnedLimit {
	x := p.shown
	if p.parts == 1 {
		return x
	}
	name, part := p.kind.key.String(), "part"
	if p.kind.divided() {
		part = p.kind.paths.parts.Found().Way.String()
	}
	switch {
	case x.Kind == LearnedPause:
		x.Why = fmt.Sprintf("%s, for the last of %d %ss of %s that are paused", p.words, p.parts, part, name)
		return x
	case p.differ && x.Per > 0:
		p.words = fmt.Sprintf("looks like %.4g per %s, found by its refusals", x.Limit, x.Per)
	case p.differ:
		p.words = fmt.Sprintf("looks like %.4g at a time, %s", x.Limit, x.Source)
	}
	x.Why = fmt.Sprintf("%s, for each of %d %ss of %s", p.words, p.parts, part, name)
	return x
}

// part is the kind of request of which c binds one part, and nothing else; nil: it binds other requests.
func (c cause) part() *endpoint {
	kinds := c.kinds()
	if c.what == causeFlight {
		if _, own := c.atOnce(); own {
			kinds = []*endpoint{c.endpoint}
		}
	}
	if len(kinds) != 1 || !kinds[0].isPart() {
		return nil
	}
	return kinds[0].kind()
}
