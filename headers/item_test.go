package headers

import (
	"slices"
	"strings"
	"testing"
)

// This test is in the package because a Signal has only what is of interest in a list,
// and there is nothing else that shows how it was divided.

// write writes items as a structured field: read again, they are the same.
func write(items []item) string {
	var b strings.Builder
	str := func(v value) {
		if !v.quoted {
			b.WriteString(v.text)
			return
		}
		b.WriteByte('"')
		for i := range len(v.text) {
			if v.text[i] == '"' || v.text[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(v.text[i])
		}
		b.WriteByte('"')
	}
	for i, x := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		for k := range x.nbare {
			if k > 0 {
				b.WriteByte(';')
			}
			str(x.bare[k])
		}
		for k := range x.npair {
			if k > 0 || x.nbare > 0 {
				b.WriteByte(';')
			}
			b.WriteString(x.pairs[k].key + "=")
			str(x.pairs[k].value)
		}
	}
	return b.String()
}

func readItems(s string) (items []item) {
	l := list{rest: s}
	var x item
	for l.next(&x) {
		// Beyond the counts an item keeps what an earlier one left.
		clear(x.bare[x.nbare:])
		clear(x.pairs[x.npair:])
		items = append(items, x)
	}
	return items
}

// ListSeeds are lists as servers write them, and some that are broken. FuzzStructured,
// which is in package headers_test, begins with them, too.
var ListSeeds = []string{
	`"default";r=50;t=30`, `"a";q=10;w=1;pk=:YQ==:, "a";q=20;w=1;pk=:Yg==:`, `limit=100, remaining=50, reset=5`,
	`10, 10;w=1, 50;w=60;comment="sliding, window"`, `"fixed window";"api";q=500;w=300`, `a="\"\\";b`, `"`, `"a`, `=;=,`, `a= "b"c;d`,
	`b=per_hour;q=100;r=99;t=924,b=per_day;q=1`, `api-usage=25/5000; per-app-api-usage=17/250(appName=x)`, `"\`, `x="\";"`,
}

// FuzzItems holds that a list that was read and written is read the same.
func FuzzItems(f *testing.F) {
	for _, s := range ListSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first := readItems(s)
		if len(first) > maxItems {
			t.Fatalf("%d items", len(first))
		}
		text := write(first)
		second := readItems(text)
		if !slices.Equal(first, second) {
			t.Errorf("%q\nread  %+v\nwrote %q\nread  %+v", s, first, text, second)
		}
	})
}
