// Package redisstore keeps the budgets of a fleet in Redis or Valkey: a
// [store.Store] for go-redis.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Config{})
//	...
//	throttle.Config{Store: store, Fleet: throttle.FleetConfig{Members: 16}, ...}
//
// Each key of a budget is one hash, which expires when the budget is full
// again. One call of a script decides about all limits of all keys of a request, by
// Redis' own clock. Redis must be version 5 or later; the tests use Redis 7. Valkey
// has the same commands, but has not been tested.
//
// A user of Redis' access lists needs +evalsha +eval +time +info +hget +hmget
// +hgetall +hset +hdel +pexpire +pttl on the keys of the prefix. Without +info,
// redisstore notices a restart from a dump, or the promotion of a late replica, only
// when a process asks that remembers more than Redis.
//
// Set Redis' policy to noeviction, or give the budgets an instance of their own. If
// Redis evicts a key, what was spent is known only as far as the processes remember
// it. When memory runs out, calls fail with [store.ErrBusy].
package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// Config says how keys are named.
type Config struct {
	// Prefix begins the name of every key; zero: "weir1". Processes with the
	// same prefix share budgets.
	Prefix string
	// Tag returns the hash tag of a key, which says where in a Cluster it is
	// kept. Keys of one request that have the same tag are decided in one
	// call, all or none; see [Store.Book] for others. Zero: the key itself,
	// which spreads the load best.
	Tag func(key string) string
}

// A Store is a [store.Store] in Redis. It holds nothing but the client, which
// stays the caller's to close.
type Store struct {
	client             redis.UniversalClient
	prefix             string
	tag                func(string) string
	cluster            bool
	book, refund, tell script
}

type script struct{ source, sha string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// New returns a Store that uses client: a *redis.Client, also one of
// redis.NewFailoverClient for Sentinel, or a *redis.ClusterClient. It does not talk
// to the server, so a program can start while Redis is down. A client whose options
// leave ContextTimeoutEnabled false is an error, because it would ignore the deadline
// of a call until its ReadTimeout.
func New(client redis.UniversalClient, c Config) (*Store, error) {
	s := &Store{client: client, prefix: c.Prefix, tag: c.Tag}
	if s.prefix == "" {
		s.prefix = "weir1"
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return nil, fmt.Errorf("redisstore: Config.Prefix %q contains a brace", c.Prefix)
	}
	if s.tag == nil {
		s.tag = func(key string) string { return key }
	}
	timeouts := true
	switch client := client.(type) {
	case nil:
		return nil, errors.New("redisstore: client is nil")
	case *redis.Client:
		timeouts = client.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		s.cluster = true
		timeouts = client.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return nil, errors.New("redisstore: a redis.Ring moves keys when a shard goes; use a Cluster")
	}
	if !timeouts {
		return nil, errors.New("redisstore: the client's options must have ContextTimeoutEnabled: true")
	}
	s.book, s.refund, s.tell = newScript(luaBook), newScript(luaRefund), newScript(luaTell)
	return s, nil
}

// name returns the Redis key: the tag in braces, so that Cluster hashes that
// alone, then the key where the tag is not the key. A tag that Cluster would
// read otherwise (it ends at the first brace) stays as consistent as any.
func (s *Store) name(key string) string {
	tag := s.tag(key)
	if tag == key {
		return s.prefix + ":{" + key + "}"
	}
	return s.prefix + ":{" + tag + "}" + key
}

// Book implements [store.Store].
//
// On a Cluster the draws of a booking may lie in different slots. Those of one
// slot are decided in one call. The slots are asked in the order of their keys'
// names; when one refuses, those before it get a refund. Between its booking
// and its refund others see such a charge, and may be told to wait for a round trip
// longer than necessary. More than a limit allows is never let through.
func (s *Store) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	if err := b.Validate(); err != nil {
		return store.Booked{}, err
	}
	if !s.cluster || len(b.Draws) == 1 {
		return s.bookSlot(ctx, b)
	}
	groups := s.groups(b)
	if len(groups) == 1 {
		return s.bookSlot(ctx, b)
	}
	return s.bookSlots(ctx, b, groups)
}

func (s *Store) bookSlot(ctx context.Context, b store.Booking) (store.Booked, error) {
	keys := make([]string, len(b.Draws))
	for i, d := range b.Draws {
		keys[i] = s.name(d.Key)
	}
	v, err := s.run(ctx, s.book, bookArgs(command(20*len(keys), keys...), b))
	if err != nil {
		return store.Booked{}, s.fail("book", b.Draws[0].Key, err)
	}
	r, err := readBooked(v, b)
	if err != nil {
		return store.Booked{}, s.fail("book", b.Draws[0].Key, err)
	}
	return r, nil
}

// groups returns the draws' indexes by slot, in the order of their keys.
func (s *Store) groups(b store.Booking) [][]int {
	order := make([]int, len(b.Draws))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return s.name(b.Draws[order[i]].Key) < s.name(b.Draws[order[j]].Key) })
	var groups [][]int
	at := make(map[uint16]int)
	for _, i := range order {
		n := slot(s.name(b.Draws[i].Key))
		g, ok := at[n]
		if !ok {
			g = len(groups)
			at[n], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// bookSlots books slot by slot, never ahead.
func (s *Store) bookSlots(ctx context.Context, b store.Booking, groups [][]int) (store.Booked, error) {
	all := store.Booked{Draw: -1, Limit: -1, Keys: make([]store.Standing, len(b.Draws))}
	begin := time.Now()
	var booked []bookedSlot
	undo := func() { s.undo(ctx, begin, booked) }
	for _, g := range groups {
		part := store.Booking{Force: b.Force}
		for _, i := range g {
			d := b.Draws[i]
			d.Units = onlyFirst(d.Units)
			part.Draws = append(part.Draws, d)
		}
		r, err := s.bookSlot(ctx, part)
		if err != nil {
			undo()
			return store.Booked{}, err
		}
		for j, i := range g {
			all.Keys[i] = r.Keys[j]
		}
		if r.Outcome == store.Refused || r.Outcome == store.Impossible {
			undo()
			all.Outcome, all.Wait, all.Ready, all.Limit = r.Outcome, r.Wait, r.Ready, r.Limit
			if r.Draw >= 0 {
				all.Draw = g[r.Draw]
			}
			return all, nil
		}
		all.Ready = max(all.Ready, r.Ready)
		booked = append(booked, bookedSlot{part, r})
	}
	all.Outcome = store.BookedOne
	return all, nil
}

// bookedSlot is what one slot has booked.
type bookedSlot struct {
	part store.Booking
	r    store.Booked
}

// undo gives back what was booked, at most once, best effort. It may take as
// long as the call that began then, whose time may be up.
func (s *Store) undo(ctx context.Context, begin time.Time, booked []bookedSlot) {
	ends, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ends.Sub(begin))
		defer cancel()
	}
	for _, d := range booked {
		for i, w := range d.part.Draws {
			_ = s.Refund(ctx, d.r.Refund(d.part, i, firsts(w), nil))
		}
	}
}

func firsts(d store.Draw) []int64 {
	var n []int64
	for _, u := range d.Units {
		n = append(n, u.First)
	}
	return n
}

func onlyFirst(us []store.UnitCost) []store.UnitCost {
	us = append([]store.UnitCost(nil), us...)
	for i := range us {
		us[i].All = us[i].First
	}
	return us
}

// Refund implements [store.Store].
func (s *Store) Refund(ctx context.Context, r store.Refund) error {
	if err := r.Validate(); err != nil {
		return err
	}
	args := append(command(4+6*len(r.Limits), s.name(r.Key)), r.Gen, r.At, r.Ready, len(r.Limits))
	for i, l := range r.Limits {
		switch l.Kind {
		case store.MeterLimit:
			args = append(args, "m", l.ID, r.Units[i], l.Rate/1e6, r.Held[i], l.Size)
		case store.CalendarLimit:
			args = append(args, "c", l.ID, r.Units[i], l.Per.Microseconds(), r.Held[i], l.Size)
		default:
			args = append(args, "l", l.ID, r.Units[i], l.Grain.Microseconds(), r.Held[i], l.Size)
		}
	}
	_, err := s.run(ctx, s.refund, args)
	if err != nil {
		return s.fail("refund", r.Key, err)
	}
	return nil
}

// Tell implements [store.Store].
func (s *Store) Tell(ctx context.Context, key string, n store.News) error {
	if err := n.Validate(); err != nil {
		return err
	}
	args := append(command(8, s.name(key)), n.Resume, micros(n.Pause), micros(n.Guess), len(n.Stated))
	for _, q := range n.Stated {
		args = append(args, q.ID, q.Unit, q.Remaining, micros(q.Reset))
	}
	args = append(args, len(n.Refill))
	for _, r := range n.Refill {
		kind := map[store.LimitKind]string{store.MeterLimit: "m", store.LogLimit: "l", store.CalendarLimit: "c"}[r.Kind]
		args = append(args, kind, r.ID, r.Units)
	}
	_, err := s.run(ctx, s.tell, args)
	if err != nil {
		return s.fail("tell", key, err)
	}
	return nil
}

// micros rounds up.
func micros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}
