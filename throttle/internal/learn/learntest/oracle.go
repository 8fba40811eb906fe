package learntest

// An oracle knows the server, and sends what is refused never: each call waits
// before the server until there is room, in order of arrival. What it needs is
// what no client can undercut by knowing more.
type oracle struct {
	*run
	waiting []*job // at the server
	sends   []send
	timer   Instant
}

// A send is one of the oracle's schedule.
type send struct {
	at Instant // when it arrives
}

// Ideal is how an all-knowing client fares.
func (c *Case) Ideal() Result {
	r, _ := c.ideal()
	return r
}

func (c *Case) ideal() (Result, []send) {
	o := &oracle{run: newRun(c)}
	o.run.client = o
	return o.play(), o.sends
}

func (o *oracle) begin(j *job) {
	up := o.trip()
	o.at(o.now+up, func() {
		o.waiting = append(o.waiting, j)
		o.pump()
	})
}

func (o *oracle) pump() {
	for len(o.waiting) > 0 {
		room := o.server.room(o.now)
		if room > o.now {
			o.wake(room)
			return
		}
		j := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.sends = append(o.sends, send{at: o.now})
		if ok, _ := o.server.arrive(o.now); !ok {
			o.r.Refusals++
		}
		o.at(o.now+o.c.service, func() { o.server.done(); o.pump() })
		o.at(o.now+o.c.service+o.trip(), func() {
			o.accepted()
			o.end(j, true)
		})
	}
}

func (o *oracle) wake(t Instant) {
	if t >= forever || o.timer == t {
		return
	}
	o.timer = t
	o.at(t, o.pump)
}
