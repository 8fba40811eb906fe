package throttle

import (
	"hash/maphash"
	"math/rand/v2"
	"time"

	"github.com/weirhttp/weir/throttle/internal/caller"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

func newLearnTerms(c *Config, epoch time.Time) *learnTerms {
	members := 0
	if c.Store != nil && c.Fleet.WhenDown == ShareRates {
		members = c.Fleet.Members
	}
	return &learnTerms{
		Terms:      stated.Terms{MaxPause: c.MaxPause, Pace: c.Pace, Fleet: c.Store != nil, Members: members},
		pausesOnly: c.DisableLearning, maxQueue: c.MaxQueue, zero: epoch, seed: maphash.MakeSeed(), callers: caller.New(), words: newLearnWords(), jitter: rand.Float64,
	}
}

// learnTerms are the settings that learning depends on.
type learnTerms struct {
	stated.Terms
	pausesOnly bool      // nothing is learned but pauses
	maxQueue   int       // Config.MaxQueue; zero: unset
	zero       time.Time // what our zero time is on the wall, for words
	seed       maphash.Seed
	callers    *caller.Keys
	words      *learnWords
	jitter     func() float64 // uniform in [0,1)
	before     *before        // of one caller, who has terms of his own then: what is known from another run; nil: nothing
}

// learnWords are terms that all hosts share.
type learnWords struct{ server, host, endpoint, group, alone, object, asker *queue.Label }

func newLearnWords() *learnWords {
	return &learnWords{
		server:   &queue.Label{Text: "what the server bears", ToHeaders: true, Says: true},
		host:     &queue.Label{Text: "requests at a time to a host not well known", ToHeaders: true},
		endpoint: &queue.Label{Text: "requests of one kind at a time", ToHeaders: true},
		group:    &queue.Label{Text: "what the server bears of some kinds", ToHeaders: true, Says: true},
		alone:    &queue.Label{Text: "refusals of this request alone", ToHeaders: true},
		object:   &queue.Label{Text: "refusals of this URL alone", ToHeaders: true},
		asker:    &queue.Label{Text: "one request that asks", ToHeaders: true},
	}
}
