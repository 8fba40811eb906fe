// Package histogram counts durations by length, in little memory.
//
// [Counts] are the durations of one host or route. Most of a program's hosts are called
// seldom, and each has some: so they are made when the first duration is counted, and hold
// 32 bits of a number until one needs more. Their buckets are fixed, see [Bounds], so that
// they can be added up. Nothing is lost when a number grows beyond 32 bits, and a sum stays at
// what a [time.Duration] can hold at most.
//
// There is no lock here: their owner guards Counts.
package histogram

import (
	"math"
	"time"
)

// bounds are the upper ends of the buckets, but for the last, which has none. It is never
// written to. Latencies of APIs lie between the first and ten seconds, waits for budget go up
// to the last.
var bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// Buckets is how many there are.
const Buckets = len(bounds) + 1

// Bounds returns the upper ends of all buckets but the last, the smallest first. A duration
// that is just as long as a bound belongs to it.
func Bounds() [Buckets - 1]time.Duration { return bounds }

// Counts are how many durations were counted, by length. The zero Counts are none.
type Counts struct {
	sum   time.Duration
	low   [Buckets]uint32
	carry *[Buckets]uint32 // what low is too narrow for; nil: nothing yet
}

// Add counts d in *c, which is made if need be. Less than zero, as of a clock that was set
// back, counts as zero.
func Add(c **Counts, d time.Duration) {
	if *c == nil {
		*c = new(Counts)
	}
	d = max(0, d)
	i := 0
	for i < len(bounds) && d > bounds[i] { // most are short: a binary search takes longer
		i++
	}
	(*c).count(i, 1)
	(*c).spend(d)
}

// Merge adds o, which may be nil, to *c, which is made if need be.
func Merge(c **Counts, o *Counts) {
	if o == nil {
		return
	}
	if *c == nil {
		*c = new(Counts)
	}
	for i := range Buckets {
		(*c).count(i, uint64(o.In(i)))
	}
	(*c).spend(o.sum)
}

// In is how many are in the i-th bucket.
func (c *Counts) In(i int) int64 {
	n := int64(c.low[i])
	if c.carry != nil {
		n += int64(c.carry[i]) << 32
	}
	return n
}

// Sum is that of all durations.
func (c *Counts) Sum() time.Duration { return c.sum }

func (c *Counts) count(i int, n uint64) {
	n += uint64(c.low[i])
	c.low[i] = uint32(n)
	if n >>= 32; n == 0 {
		return
	}
	if c.carry == nil {
		c.carry = new([Buckets]uint32)
	}
	c.carry[i] += uint32(n)
}

func (c *Counts) spend(d time.Duration) {
	if c.sum += d; c.sum < 0 {
		c.sum = math.MaxInt64
	}
}
