package throttle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns b in the form that [ParseBudget] reads.
func (b Budget) String() string {
	var items []string
	for _, r := range b.Rates {
		items = append(items, r.String())
	}
	if b.InFlight != 0 {
		items = append(items, strconv.Itoa(b.InFlight)+" in flight")
	}
	if len(items) == 0 {
		items = append(items, "unlimited")
	}
	if b.Pool != "" {
		name := b.Pool
		if !isWord(name) {
			name = strconv.Quote(name)
		}
		items = append(items, "pool "+name)
	}
	return strings.Join(items, ", ")
}

// String returns r as it stands in the text of a budget: "100000/h burst 200".
func (r Rate) String() string {
	var t strings.Builder
	t.WriteString(strconv.Itoa(r.Limit))
	if r.unit() != requests {
		t.WriteString(" " + r.Unit)
	}
	t.WriteString("/" + span(r.Per))
	if r.Burst != 0 {
		t.WriteString(" burst " + strconv.Itoa(r.Burst))
	}
	if r.Bucket != 0 {
		t.WriteString(" bucket " + strconv.Itoa(r.Bucket))
	}
	if r.Even {
		t.WriteString(" even")
	}
	if r.Align != nil {
		t.WriteString(" align " + r.Align.String())
	}
	if r.WarmUp != 0 {
		w := span(r.WarmUp)
		if w[0] < '0' || w[0] > '9' {
			w = "1" + w
		}
		t.WriteString(" warmup " + w)
	}
	return t.String()
}

// MarshalText returns the text of b. It fails for a budget that is not valid,
// or whose Align is a place that has no name in the time zone database.
func (b Budget) MarshalText() ([]byte, error) {
	text := b.String()
	if back, err := ParseBudget(text); err != nil {
		return nil, err
	} else if !back.equal(b) {
		return nil, fmt.Errorf("throttle: the budget cannot be written as text: %q would be read as another budget", text)
	}
	return []byte(text), nil
}

// UnmarshalText is [ParseBudget].
func (b *Budget) UnmarshalText(text []byte) error {
	parsed, err := ParseBudget(string(text))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}

// A timeUnit is a length of time by its names, the one that String uses first.
type timeUnit struct {
	d     time.Duration
	names []string
}

// timeUnits are the lengths of time a budget's text knows, longest first.
func timeUnits() []timeUnit {
	return []timeUnit{
		{7 * 24 * time.Hour, []string{"w", "week", "weeks"}},
		{24 * time.Hour, []string{"d", "day", "days"}},
		{time.Hour, []string{"h", "hour", "hours"}},
		{time.Minute, []string{"m", "min", "minute", "minutes"}},
		{time.Second, []string{"s", "sec", "second", "seconds"}},
		{time.Millisecond, []string{"ms"}},
		{time.Microsecond, []string{"us", "µs"}},
		{time.Nanosecond, []string{"ns"}},
	}
}

// span writes a length of time as it stands after the slash: "s", "10s", "d".
func span(d time.Duration) string {
	for _, u := range timeUnits() {
		if d%u.d == 0 && d != 0 {
			if d == u.d {
				return u.names[0]
			}
			return strconv.FormatInt(int64(d/u.d), 10) + u.names[0]
		}
	}
	return d.String()
}

// isWord reports whether s can stand in a budget's text without quotes.
func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if !wordByte(s[i]) {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '-' && s[0] != '.'
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._", c) >= 0
}
