package throttle

import (
	"hash/maphash"
	"time"

	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// learnTerms are the settings that learning depends on.
type learnTerms struct {
	stated.Terms
	pausesOnly bool      // nothing is learned but pauses
	zero       time.Time // what our zero time is on the wall, for words
	seed       maphash.Seed
	words      *learnWords
	jitter     func() float64 // uniform in [0,1)
	before     *before        // of one caller, who has terms of his own then: what is known from another run; nil: nothing
}

// learnWords are terms that all hosts share.
type learnWords struct{ server, host, endpoint, alone, asker *queue.Label }

func newLearnWords() *learnWords {
	return &learnWords{
		server:   &queue.Label{Text: "what the server bears", ToHeaders: true, Says: true},
		host:     &queue.Label{Text: "requests at a time to a host not well known", ToHeaders: true},
		endpoint: &queue.Label{Text: "requests of one kind at a time", ToHeaders: true},
		alone:    &queue.Label{Text: "refusals of this request alone", ToHeaders: true},
		asker:    &queue.Label{Text: "one request that asks", ToHeaders: true},
	}
}

// A quota is a limit that the server stated, and whom it binds. Whoever owns it holds
// the lock.
type quota struct {
	stated.Limit
	account   *queue.Account
	terms     *learnTerms
	endpoints []*endpoint // the kinds of request that it binds
	spent     bool        // the last answer left nothing
}

// count says whether requests of g draw units of q, or only wait for its pauses.
func (q *quota) count(counted bool, g *queue.Group) {
	t := &queue.Label{Text: "the limit stated by " + fieldName(q.Source), ToHeaders: true}
	if counted {
		t.Unit, t.ToHeaders = unitName(q.ID.Unit), false
	}
	if q.account == nil {
		q.account = &queue.Account{Meter: q, Group: g}
	}
	q.account.Label = t
	q.Count(counted, q.account)
}
