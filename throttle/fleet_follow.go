package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A process that is paused books nothing, and so it hears nothing of the others. If it waited for
// the end of the pause, it would hear only then what was sent before the pause and which of that was
// refused, and take it for sent then. So it goes on to ask the Store until nothing stirs.

// followed is for how long a process asks at most, as refusals that come later than that are hardly
// ones of what was sent before the pause. If others are not paused, something always stirs.
const followed = 2 * time.Second

// A follower asks the Store again and again. Its owner guards it.
type follower struct {
	start func()  // makes it ask until next returns false
	stirs bool    // the Store has told something new, or what others sent may still be refused
	on    bool    // it has started, and not ended
	ends  instant // it asks until then at most
}

// follow starts f if something stirs.
func (f *follower) follow(now instant) {
	if f.ends = now.Add(followed); f.stirs && !f.on {
		f.on = true
		f.start()
	}
}

// next reports whether the Store is asked once more. ok says that it has answered.
func (f *follower) next(now instant, ok bool) bool {
	f.on = ok && f.stirs && now < f.ends
	return f.on
}

// follows makes o follow what is counted under key, and sets what those call that wait in the Store.
func (o *peers) follows(f *fleet.Fleet, key fleet.Key, locked func(do func(now instant))) {
	o.heard = func() {
		locked(func(now instant) {
			o.hear(now)
			o.follow(now)
		})
	}
	o.start = func() {
		f.Follow(key, func(ok bool) (more bool) {
			locked(func(now instant) {
				if o.asked = now; ok {
					o.hear(now)
				}
				more = o.next(now, ok)
			})
			return more
		})
	}
}

// hears is what is called when the Store lets a request wait; nil: nothing is.
func (o *peers) hears() func() {
	if o == nil {
		return nil
	}
	return o.heard
}

// locked returns what calls do with the lock held, and then lets those that wait for a see to it.
func (p *attempt) locked(a *queue.Account) func(do func(now instant)) {
	r := p.record
	return func(do func(now instant)) {
		d := r.lock()
		defer d.Unlock()
		now := d.Now()
		do(now)
		d.Mark(a)
		d.Run(now)
	}
}

// asks returns what asks the Store about key, and lets then and those that wait for a
// see to it.
func (p *attempt) asks(key fleet.Key, a *queue.Account, then func(now instant)) func(waits *fleet.Tally) {
	f, locked := p.record.t.fleet, p.locked(a)
	return func(waits *fleet.Tally) { f.Ask(key, waits, func() { locked(then) }) }
}
