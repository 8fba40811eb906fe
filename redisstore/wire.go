package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// A once is a command that go-redis must not repeat: a script whose reply was
// lost may have charged.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// command begins a call of a script on keys that takes some n arguments.
func command(n int, keys ...string) []any {
	c := make([]any, 2, 3+len(keys)+n)
	c = append(c, len(keys))
	for _, k := range keys {
		c = append(c, k)
	}
	return c
}

// run sends the script's hash, and its source to a server that does not know
// the hash: scripts are lost in restarts and failovers and by SCRIPT FLUSH.
// NOSCRIPT means that nothing was run, so this repeats nothing.
func (s *Store) run(ctx context.Context, sc script, c []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // go-redis would still dial
	}
	c[0], c[1] = "evalsha", sc.sha
	v, err := s.send(ctx, c)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c[0], c[1] = "eval", sc.source
		v, err = s.send(ctx, c)
	}
	return v, err
}

// send sends c once. A ClusterClient looks for another node only when it repeats a
// command, or once a minute: it is told when a node does not answer.
func (s *Store) send(ctx context.Context, c []any) (any, error) {
	cmd := once{redis.NewCmd(ctx, c...)}
	_ = s.client.Process(ctx, cmd) // the command holds the error
	v, err := cmd.Result()
	if err != nil && s.cluster {
		var answer redis.Error
		if !errors.As(err, &answer) {
			s.client.(*redis.ClusterClient).ReloadState(ctx)
		}
	}
	return v, err
}

// bookArgs are a call's arguments. Numbers go out with all the digits that they need.
func bookArgs(args []any, b store.Booking) []any {
	force := 0
	if b.Force {
		force = 1
	}
	args = append(args, micros(b.MaxWait), force)
	for _, d := range b.Draws {
		args = append(args, len(d.Units))
		for _, u := range d.Units {
			args = append(args, u.Unit, u.First, u.All)
		}
		args = append(args, d.Seen.Gen)
		if d.Seen.Gen != 0 {
			args = append(args, d.Seen.At, d.Seen.Age.Microseconds(), d.Seen.Paused.Microseconds(), d.Seen.Clock)
		}
		args = append(args, len(d.Moved))
		for _, m := range d.Moved {
			args = append(args, m.Gen, m.From, m.Age.Microseconds())
			for _, n := range m.Units {
				args = append(args, n)
			}
		}
		args = append(args, len(d.Limits))
		for i, l := range d.Limits {
			args = limitArgs(args, l)
			if d.Seen.Gen != 0 {
				if len(d.Seen.Levels) > 0 {
					args = append(args, d.Seen.Levels[i])
				} else {
					args = append(args, "")
				}
			}
		}
	}
	return args
}

func limitArgs(args []any, l store.Limit) []any {
	switch l.Kind {
	case store.MeterLimit:
		return append(args, "m"+l.ID, l.Unit+1, l.Size, l.Rate/1e6, l.Credit)
	case store.CalendarLimit:
		return append(args, "c"+l.ID, l.Unit+1, l.Size, l.Per.Microseconds(), l.Ends.UnixMicro())
	}
	return append(args, "l"+l.ID, l.Unit+1, l.Size, l.Per.Microseconds(), l.Grain.Microseconds())
}

// readBooked reads [outcome, wait, now, draw, limit] and per key [gen, at,
// paused, level...], or what is usual. Redis cuts numbers to integers, so what is
// none comes as text.
func readBooked(v any, b store.Booking) (store.Booked, error) {
	if text, ok := v.(string); ok {
		return readUsual(text, b)
	}
	list, ok := v.([]any)
	if !ok {
		return store.Booked{}, fmt.Errorf("reply %T, want a list", v)
	}
	p := reply{list: list}
	r := store.Booked{Outcome: store.Outcome(p.int())}
	wait := p.int()
	r.Wait = time.Duration(wait) * time.Microsecond
	r.Ready = p.int() + wait
	r.Draw, r.Limit = int(p.int()), int(p.int())
	for _, d := range b.Draws {
		k := store.Standing{Gen: p.int(), At: p.int(), Paused: time.Duration(p.int()) * time.Microsecond}
		for range d.Limits {
			k.Levels = append(k.Levels, p.float())
		}
		r.Keys = append(r.Keys, k)
	}
	return r, p.err
}

// readUsual reads "at gen" and "level rest" for each limit of the only key, all of
// which was booked.
func readUsual(text string, b store.Booking) (store.Booked, error) {
	var err error
	next := func() (word string) { word, text, _ = strings.Cut(text, " "); return word }
	whole := func() int64 {
		n, e := strconv.ParseInt(next(), 10, 64)
		err = errors.Join(err, e)
		return n
	}
	k := store.Standing{At: whole(), Gen: whole(), Levels: make([]float64, len(b.Draws[0].Limits))}
	for i := range k.Levels {
		f, e := strconv.ParseFloat(next(), 64)
		err = errors.Join(err, e)
		k.Levels[i] = f
		next()
	}
	return store.Booked{Outcome: store.BookedAll, Ready: k.At, Keys: []store.Standing{k}, Draw: -1, Limit: -1}, err
}

type reply struct {
	list []any
	err  error
}

func (p *reply) next() any {
	if len(p.list) == 0 {
		p.err = errors.New("reply is too short")
		return int64(0)
	}
	v := p.list[0]
	p.list = p.list[1:]
	return v
}

func (p *reply) int() int64 {
	switch v := p.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			p.err = err
		}
		return n
	default:
		p.err = fmt.Errorf("reply holds a %T", v)
	}
	return 0
}

func (p *reply) float() float64 {
	s, _ := p.next().(string)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.err = err
	}
	return f
}

// fail says which key and which server; the client's address has no password.
func (s *Store) fail(op, key string, err error) error {
	if isBusy(err) {
		return fmt.Errorf("redisstore: %s key %q at %s: %w: %w", op, key, s.server(), store.ErrBusy, err)
	}
	return fmt.Errorf("redisstore: %s key %q at %s: %w", op, key, s.server(), err)
}

// isBusy reports whether the server, or this process's pool, is alive but does
// not serve: whatever a server answers, except that this one is not for us.
func isBusy(err error) bool {
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return true
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, prefix := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "ASK", "NOREPLICAS"} {
		if redis.HasErrorPrefix(err, prefix) {
			return false
		}
	}
	return !redis.HasErrorPrefix(err, "Protocol error: unauthenticated") // as NOAUTH, of long commands
}

func (s *Store) server() string {
	switch c := s.client.(type) {
	case *redis.Client:
		return c.Options().Addr
	case *redis.ClusterClient:
		return fmt.Sprint(c.Options().Addrs)
	}
	return "redis"
}

// slot is the Cluster slot of a key: CRC16 (XMODEM) of its tag, as in the
// Redis Cluster specification.
func slot(key string) uint16 {
	for i := range len(key) {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					key = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
