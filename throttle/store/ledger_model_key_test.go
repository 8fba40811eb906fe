package store_test

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weirhttp/weir/throttle/store"
)

// A word is numbers that name a state, or a part of one.
type word []byte

func (w *word) add(ns ...int64) {
	for _, n := range ns {
		*w = binary.AppendVarint(*w, n)
	}
}

func (w *word) bits(fs ...float64) {
	for _, f := range fs {
		*w = binary.AppendUvarint(*w, math.Float64bits(f))
	}
}

func (w *word) say(bs ...bool) {
	for _, b := range bs {
		if b {
			*w = append(*w, 1)
		} else {
			*w = append(*w, 0)
		}
	}
}

func (w *word) standing(s store.Standing) {
	w.add(s.Gen, s.At, int64(s.Paused))
	w.bits(s.Levels...)
}

func (w *word) ledger(l store.Ledger) {
	w.add(l.Era, l.Gen, l.At, l.Pause, l.Guess, l.Heals, l.Expires, int64(len(l.Accounts)))
	for _, a := range l.Accounts {
		w.add(a.Idle, a.At, a.Ends, int64(len(a.Entries)))
		w.bits(a.Level)
		for _, e := range a.Entries {
			w.add(e.At)
			w.bits(e.Units)
		}
	}
}

func (w *word) message(m modelMessage) {
	w.add(int64(m.kind), int64(m.from), int64(m.at), m.era, int64(m.seen.Age), m.seen.Clock, int64(m.reply.Outcome), int64(m.reply.Wait), m.reply.Ready)
	w.standing(m.seen.Standing)
	for _, k := range m.reply.Keys {
		w.standing(k)
	}
	w.add(m.refund.Gen, m.refund.At, m.refund.Ready)
	w.bits(m.refund.Units...)
	w.bits(m.refund.Held...)
}

// key names s: what is under way may be delivered in any order.
func (s modelState) key() string {
	var w word
	w.add(int64(s.now), int64(s.stepped), s.era, int64(s.unknown), int64(len(s.sent)))
	w.say(s.kept, s.fault, s.lost, s.told)
	slices.Sort(s.sent)
	for _, at := range s.sent {
		w.add(int64(at))
	}
	w.ledger(s.ledger)
	w.ledger(s.saved)
	for _, p := range s.procs {
		w.standing(p.seen)
		w.add(int64(p.heard), int64(p.told), p.clock, int64(p.asks))
		w.say(p.spoke)
	}
	flight := make([]string, len(s.flight))
	for i, m := range s.flight {
		var one word
		one.message(m)
		flight[i] = string(one)
	}
	slices.Sort(flight)
	for _, m := range flight {
		w = append(w, m...)
	}
	return string(w)
}
