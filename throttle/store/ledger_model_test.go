package store_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/store"
)

var modelStates = flag.Int("ledger.states", testnet.Drawn(12000, 3000), "how many states of each model of the ledger are explored")

// The model is a ledger and two or three processes that ask it for one unit at a
// time, over a network that delays, reorders and loses messages. What they do is
// explored in orders by chance; -ledger.states says how many states. TestLedgerModelInAllOrders
// explores all orders of fewer requests. An answer that comes a tick late is given back, as a
// process does that waits no longer. A server may be put back to an earlier
// state, or lose it, once. Or its clock may step ahead once, when all processes have heard of
// its state.
const (
	modelTick = 250 * time.Millisecond
	modelEnd  = 9 // ticks
	modelAsks = 4 // of each process

	modelUnderWay = 4 // messages, at most
)

var modelStart = time.Unix(1_800_000_000, 0)

type modelMessage struct {
	kind   byte // 'a'sk, 'r'eply, 'b'ack
	from   int
	at     int // tick it was sent, or asked
	era    int64
	seen   store.Seen
	reply  store.Booked
	refund store.Refund
}

type modelProcess struct {
	seen  store.Standing
	clock int64
	heard int // tick
	told  int // tick in which the call was sent
	asks  int // left
	spoke bool
}

type modelState struct {
	now     int
	stepped int // when the clock stepped ahead, plus one; zero: it has not
	era     int64
	ledger  store.Ledger
	saved   store.Ledger
	kept    bool // saved is there to be put back
	fault   bool // has happened
	lost    bool // all, by the fault, or all that was in use
	told    bool // since the fault the ledger has begun to heal, or whoever remembers the newest state has asked
	procs   []modelProcess
	flight  []modelMessage
	sent    []int // ticks
	unknown int   // sent on answers from before the fault that came after it, or granted by a store that has lost all and was not told
}

func (s *modelState) time() time.Time {
	now := s.now
	if s.stepped > 0 {
		now += modelStep
	}
	return modelStart.Add(time.Duration(now) * modelTick)
}

func (s modelState) clone() modelState {
	s.procs, s.flight, s.sent = slices.Clone(s.procs), slices.Clone(s.flight), slices.Clone(s.sent)
	return s
}

type model struct {
	limit store.Limit
	wait  time.Duration
	fault string // how a ledger or a process is broken, so that a test sees that the model finds it; "": none is
	end   int    // ticks; zero: time goes on for as long as anything changes
	most  int    // messages under way
	delay int    // ticks after which a message is lost; zero: any may come however late
	tick  int    // by how many ticks time goes on at once
	still bool   // the clock does not step
	r     *rand.Rand
	seen  map[string]bool
	t     *testing.T
}

func (m *model) booking(seen store.Seen) store.Booking {
	return store.Booking{MaxWait: m.wait, Draws: []store.Draw{{Key: "k", Limits: []store.Limit{m.limit}, Units: []store.UnitCost{{"requests", 1, 1}}, Seen: seen}}}
}

// steps calls visit with each state that may follow s.
func (m *model) steps(s modelState, visit func(modelState, string)) {
	for i, p := range s.procs {
		if p.asks > 0 && len(s.flight) < m.most {
			n := s.clone()
			n.procs[i].asks--
			msg := modelMessage{kind: 'a', from: i, at: s.now, era: s.era}
			if p.seen.Gen != 0 {
				msg.seen = store.Seen{Standing: p.seen, Age: time.Duration(s.now-p.heard) * modelTick,
					Clock: p.clock + int64(s.now-p.told)*modelTick.Microseconds()}
			}
			n.flight = append(n.flight, msg)
			visit(n, fmt.Sprint("ask ", i))
		}
	}
	for i, msg := range s.flight {
		if s.tooLate(msg) {
			continue
		}
		n := s.clone()
		n.flight = slices.Delete(n.flight, i, i+1)
		visit(m.deliver(n, msg), fmt.Sprintf("deliver %c of %d", msg.kind, msg.from))
	}
	if !s.kept && !s.fault && s.ledger.Gen != 0 {
		n := s.clone()
		n.saved, n.kept = s.ledger, true
		visit(n, "save")
	}
	if !m.still && s.mayStep() {
		n := s.clone()
		n.stepped = n.now + 1
		for i := range n.procs {
			n.procs[i].spoke = false
		}
		visit(n, "clock ahead")
	}
	if !s.fault && s.stepped == 0 && s.ledger.Gen != 0 {
		n := s.clone()
		n.fault, n.lost, n.era, n.ledger = true, !s.kept, s.era+1, s.saved
		n.ledger.Era, n.saved, n.kept = n.era, store.Ledger{}, false
		n.ledger = m.brokenRestore(n.ledger)
		for i := range n.procs {
			n.procs[i].spoke = false
		}
		visit(n, "restore")
	}
	if (m.end == 0 || s.now < m.end) && !m.silent(s) {
		n := s.clone()
		n.now += m.tick
		n.flight = slices.DeleteFunc(n.flight, func(msg modelMessage) bool { return m.delay > 0 && n.now-msg.at > m.delay })
		visit(n, "tick")
	}
}

// silent says that time may not go on: processes with work to do ask while a
// ledger heals. Of those that do not the ledger cannot know.
func (m *model) silent(s modelState) bool {
	if !s.fault && s.stepped == 0 {
		return false
	}
	for _, p := range s.procs {
		if p.seen.Gen != 0 && !p.spoke {
			return true
		}
	}
	return false
}

func (m *model) deliver(s modelState, msg modelMessage) modelState {
	p := &s.procs[msg.from]
	switch msg.kind {
	case 'a':
		b := m.booking(msg.seen)
		if msg.seen.Gen != 0 {
			b.Draws[0].Seen.Age += time.Duration(s.now-msg.at) * modelTick
		}
		if s.fault && s.ledger.Gen>>19 != s.era && s.ledger.Idle(s.time()) {
			s.lost = true // what was put back says nothing any more
		}
		s.lost = s.lost || s.overEarly()
		next, r := store.Book(s.time(), []store.Ledger{s.ledger}, m.broken(b))
		if next != nil {
			s.ledger = next[0]
		}
		if msg.era == s.era {
			p.spoke = true
		}
		s.told = s.told || s.ledger.Heals != 0 || s.newest(msg.seen) && m.remembers(s.time(), msg.seen.Age+time.Duration(s.now-msg.at)*modelTick, msg.seen)
		s.flight = append(s.flight, modelMessage{kind: 'r', from: msg.from, at: msg.at, era: s.era, seen: msg.seen, reply: r})
		if !s.told && s.lost && charges(r) {
			s.unknown++ // also if it is given back: it may have been taken for one of before
		}
	case 'b':
		s.ledger = s.ledger.AfterRefund(s.time(), m.brokenRefund(s.ledger, msg.refund))
	case 'r':
		granted := charges(msg.reply)
		k := msg.reply.Keys[0]
		carried := m.fault == "forget" || msg.seen.Gen == p.seen.Gen && msg.seen.At == p.seen.At // else the ledger does not know all that the process does
		if k.Gen != 0 && (p.seen.Gen == k.Gen && p.seen.At <= k.At || p.seen.Gen != k.Gen && carried) {
			p.seen, p.heard, p.told, p.clock = k, s.now, msg.at, msg.reply.Ready-msg.reply.Wait.Microseconds()
		}
		switch late := s.now > msg.at; {
		case granted && late:
			f := msg.reply.Refund(m.booking(store.Seen{}), 0, []int64{1}, nil)
			s.flight = append(s.flight, modelMessage{kind: 'b', from: msg.from, at: s.now, refund: f})
		case granted:
			s.sent = append(s.sent, s.now+int((msg.reply.Wait+modelTick-1)/modelTick))
			if msg.era != s.era {
				s.unknown++
			}
		}
	}
	return s
}

// remembers reports whether seen, which is so old, has units that may be in use now, by the time
// from which a ledger takes them to count.
func (m *model) remembers(now time.Time, age time.Duration, seen store.Seen) bool {
	booked := time.UnixMicro(seen.At).Add(store.Ahead) // at the latest
	if as := now.Add(-age); as.Before(booked) {
		booked = as
	}
	seen.Age = age
	return seen.Room(0, m.limit) < m.limit.Size && (m.limit.Kind != store.LogLimit || booked.Add(m.limit.Per).After(now))
}

func charges(r store.Booked) bool {
	return r.Outcome == store.BookedAll || r.Outcome == store.BookedOne
}

// newest reports whether no process remembers a newer state of before the fault than seen.
func (s *modelState) newest(seen store.Seen) bool {
	older := s.stepped == 0 && seen.Gen>>19 == s.era
	return seen.Gen != 0 && !older && !slices.ContainsFunc(s.procs, func(p modelProcess) bool {
		return p.seen.Gen != 0 && (s.stepped > 0 || p.seen.Gen>>19 != s.era) && (p.seen.At > seen.At || p.seen.At == seen.At && p.seen.Levels[0] > seen.Levels[0])
	})
}

// check compares what was sent with the limit.
func (m *model) check(s modelState) error {
	slices.Sort(s.sent)
	for i := range s.sent {
		for j := i; j < len(s.sent); j++ {
			w := time.Duration(s.sent[j]-s.sent[i]) * modelTick
			most := m.limit.Size
			if m.limit.Kind == store.MeterLimit {
				most += m.limit.Rate * w.Seconds()
			} else if w >= m.limit.Per {
				break
			}
			if n := float64(j - i + 1); n > most+1e-6+float64(s.unknown) {
				return fmt.Errorf("%v units within %v at ticks %v, want at most %v, and %d that the store cannot know of", n, w, s.sent, most, s.unknown)
			}
		}
	}
	return nil
}

// modelFirst is the state in which nobody has asked yet: of two processes, or of three if the name
// says so.
func modelFirst(name string) modelState {
	n := 2
	if strings.Contains(name, "three") {
		n = 3
	}
	return modelState{era: 1, ledger: store.Ledger{Era: 1}, procs: make([]modelProcess, n)}
}

func TestLedgerModel(t *testing.T) {
	for name, m := range map[string]model{
		"log of two processes":          {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 2, Per: time.Second}},
		"log, booked ahead":             {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 1, Per: 500 * time.Millisecond}, wait: 500 * time.Millisecond},
		"meter of two processes":        {limit: store.Limit{ID: "m", Kind: store.MeterLimit, Size: 2, Rate: 1}},
		"meter of three, booked ahead":  {limit: store.Limit{ID: "m", Kind: store.MeterLimit, Size: 1, Rate: 4}, wait: 500 * time.Millisecond},
		"calendar that does not turn":   {limit: store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 2, Per: time.Hour, Ends: modelStart.Add(time.Minute)}},
		"log of three processes, exact": {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 3, Per: 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			m.t, m.seen, m.r, m.end, m.most, m.tick = t, make(map[string]bool), rand.New(rand.NewPCG(1, 1)), modelEnd, modelUnderWay, 1
			first := modelFirst(name)
			for i := range first.procs {
				first.procs[i].asks = modelAsks
			}
			m.explore(first, nil)
			t.Log(len(m.seen), "states")
		})
	}
}

// explore visits the states after s, each once, deepest first, in an order by
// chance: what is left out when there are too many is not all of one kind.
func (m *model) explore(s modelState, path []string) bool {
	if err := m.check(s); err != nil {
		m.t.Errorf("%v, after %s", err, strings.Join(path, ", "))
		return false
	}
	type follow struct {
		s    modelState
		step string
	}
	var all []follow
	m.steps(s, func(n modelState, step string) { all = append(all, follow{n, step}) })
	m.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, n := range all {
		key := n.s.key()
		if m.seen[key] || len(m.seen) >= *modelStates {
			continue
		}
		m.seen[key] = true
		if !m.explore(n.s, append(slices.Clone(path), n.step)) {
			return false
		}
	}
	return true
}
